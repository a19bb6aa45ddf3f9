"""The page of a compression says what result.json says, and nothing is fetched for it."""

import html
import re

import pytest

from rankbits.report import compress_page, frontier


def row(method, n_bytes, query, pool, kept, **changed):
    metrics = {
        name: {"value": kept / 2, "kept": kept, "low": kept - 0.03, "high": kept + 0.03}
        for name in ("nDCG@10", "overlap@10")
    }
    return {
        "method": method, "bytes": n_bytes, "bytes_with_model": n_bytes + 1.25,
        "bits": 8 * n_bytes, "query": query, "pool": pool, "microseconds": 12.0 + n_bytes,
        "is_peer": False, "metrics": metrics, **changed,
    }  # fmt: skip


@pytest.fixture
def result():
    candidates = [
        row(method, n_bytes, query, pool, kept)
        for method, base in (("itq", 0.5), ("<b>odd</b>", 0.45))
        for n_bytes, more in ((8, 0.0), (16, 0.2))
        for query, real in (("bits", 0.0), ("real", 0.05))
        for pool, gain in ((None, 0.0), (50, 0.21))
        for kept in [base + more + real + gain]
    ]
    candidates.append(row("faiss PQ", 8, "real", None, 0.61, is_peer=True))
    chosen = {
        **candidates[7], "metric": "nDCG@10", "keep": 0.95, "holds": True, "target": 0.95,
        "agreeing": 1.0, "sentence": "16 bytes, itq: keeps 96 % (93–99) of nDCG@10.", "advice": "",
    }  # fmt: skip
    return {
        "reference": {"truth": "labels", "metrics": {"nDCG@10": 0.5, "overlap@10": 1.0}},
        "candidates": candidates,
        "recommendation": chosen,
        "losers": [{"query": 17, "reference": 0.75, "value": 0.25}],
        "judging": {"queries": 93, "how": "each of 10 parts by a choice made on the others"},
        "similarity": "cosine",
        "data": {
            "items_file": "items.npy", "queries_file": None, "items": 11426, "width": 384,
            "dtype": "float32", "float_bytes": 1536, "queries": 93, "asked_by": "queries",
            "digest": {"items": "abc"},
        },
        "diagnosis": {"words": ["All vectors have length 1."]},
        "notes": ["7 queries are copies of others"],
        "plan": {"training_rows": 11426, "methods": ["itq"]},
        "settings": {"seed": 0},
        "environment": {"rankbits": "0", "python": "3", "numpy": "2", "machine": "x",
                        "processors": 2},
        "seconds": 12.0,
        "peak_memory_mb": 300.0,
    }  # fmt: skip


def table_rows(page):
    """The cells of every row of every table, as plain text."""
    return [
        [
            html.unescape(re.sub(r"<[^>]+>", " ", cell)).split()
            for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", found, re.DOTALL)
        ]
        for found in re.findall(r"<tr[^>]*>(.*?)</tr>", page, re.DOTALL)
    ]


def test_every_candidate_is_on_the_page_with_the_numbers_of_the_result(result):
    page = compress_page(result)
    rows = table_rows(page)
    words = {"bits": "queries in bits", "real": "real-valued queries"}
    for candidate in result["candidates"]:
        kept = candidate["metrics"]["nDCG@10"]
        expected = [
            [*candidate["method"].split(), *words[candidate["query"]].split()],
            [str(candidate["bytes"]), f"{candidate['bytes_with_model']:.1f}"],
            ["–" if candidate["pool"] is None else str(candidate["pool"])],
            [f"{kept['value']:.4f}"],
            [f"{100 * kept['kept']:.1f}", f"{100 * kept['low']:.1f}", "–",
             f"{100 * kept['high']:.1f}"],
            [f"{candidate['microseconds']:.0f}"],
        ]  # fmt: skip
        assert expected in rows
    assert [["17"], ["0.7500"], ["0.2500"], ["0.5000"]] in rows


def test_the_sentence_comes_first_and_everything_else_is_there(result):
    page = compress_page(result)
    words = re.sub(r"<[^>]+>", "", page)
    places = [
        words.index(text)
        for text in (
            result["recommendation"]["sentence"],
            "Quality kept against bytes",
            "Against the number of re-ranked items",
            "Against time",
            "The candidates worth a look",
            "The queries that lose most",
            "A look at the vectors",
            "How this was made",
        )
    ]
    assert places == sorted(places)
    assert "7 queries are copies of others." in page
    assert "8 bytes: itq keeps 55.0%, faiss PQ 61.0%" in page
    assert "the peer is ahead" in page


def test_nothing_is_fetched_and_names_are_escaped(result):
    page = compress_page(result)
    links = re.findall(r'(?:href|src)="([^"]*)"|url\(([^)]*)\)', page)
    assert all((a or b).startswith("#") for a, b in links)
    assert "<script" not in page
    assert "<b>odd</b>" not in page


def test_the_frontier_has_what_nothing_beats(result):
    ours = [one for one in result["candidates"] if not one["is_peer"]]

    def cost(one):
        return one["bytes"], one["pool"] or 0

    def kept(one):
        return one["metrics"]["nDCG@10"]["kept"]

    unbeaten = [
        one
        for one in ours
        if not any(
            other is not one
            and all(a <= b for a, b in zip(cost(other), cost(one), strict=True))
            and kept(other) >= kept(one)
            for other in ours
        )
    ]
    assert frontier(result["candidates"], "nDCG@10") == sorted(unbeaten, key=cost)
