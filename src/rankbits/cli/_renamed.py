"""Former options, and what does the same today: by command, for errors and for the docs."""

_SEARCH = {
    "--vectors": "`rankbits search FOLDER QUERIES --model MODEL`, with the vectors as QUERIES",
    "--option": "`--param NAME=VALUE`",
}

RENAMED: dict[str, dict[str, str]] = {
    "compress": {
        "--check": "`rankbits compress-check FOLDER ITEMS [QUERIES]`",
        "--search": "`rankbits search FOLDER QUERIES`",
        "-k": "`rankbits search FOLDER QUERIES -k K`",
        "--k": "`rankbits search FOLDER QUERIES -k K`",
    },
    "evaluate": {
        "--vectors": "`--similarity cosine`, `ip` or `l2`",
        "--vector-metric": "`--similarity`",
        "--query-weights": "`--queries FILE --by weights`",
    },
    "audit": {"--k": "`--cutoff`"},
    "fit": {"--tags": "`--labels`", "--neighbours": "`--neighbors`"},
    "bench": {
        "--queries": "`--by bits` or `--by weights`",
        "--codes": "`rankbits bench-codes PROTOCOL CODES --data DATA`",
        "--write-split": "`rankbits bench-split PROTOCOL --data DATA --out FILE`",
    },
    "papers": {"--methods": "`--method`"},
    "serve": {
        "--max-body": "`--limit body_bytes=N`",
        "--max-batch": "`--limit batch=N`",
        "--max-k": "`--limit k=N`",
        "--max-seconds": "`--limit seconds=N`",
        "--max-requests": "`--limit requests=N`",
        "--max-connections": "`--limit connections=N`",
        "--max-memory": "`--limit memory=N`",
    },
    "index build": {"--replace": "`--overwrite`", "--by": "`--shard-by`"},
    "index search": _SEARCH,
    "search": _SEARCH,
    "index sql": {"--metric": "`--similarity`"},
}
