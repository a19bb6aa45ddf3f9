"""A hasher at the end of a SentenceTransformer, and the binary embeddings of that library."""

import importlib.util

import numpy as np
import pytest
import torch

from rankbits import BinaryCodes, methods
from rankbits.adapters.sentence_transformers import (
    CodeModule,
    append_hasher,
    load_model,
    read_codes,
)
from rankbits.errors import InputError, MissingExtraError
from rankbits.index import HammingIndex

IS_INSTALLED = importlib.util.find_spec("sentence_transformers") is not None
needs_package = pytest.mark.skipif(
    not IS_INSTALLED, reason="sentence-transformers is not installed"
)
WORDS = [f"word{i}" for i in range(12)]
TEXTS = [" ".join(WORDS[j] for j in range(12) if i * 37 >> j & 1) for i in range(1, 41)]


@pytest.fixture
def hasher(rng):
    return methods.get("distilled", n_bits=20, n_steps=5, random_state=0).fit(
        rng.standard_normal((60, 12))
    )


@pytest.fixture
def model():
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import BoW

    return SentenceTransformer(modules=[BoW(WORDS)], device="cpu")  # has no weights to fetch


def test_the_module_gives_bits_to_documents_and_weights_to_queries(hasher, rng):
    rows = rng.standard_normal((9, 12)).astype(np.float32)
    module, features = CodeModule(hasher), {"sentence_embedding": torch.from_numpy(rows), "x": 1}
    for task in (None, "document"):
        signs = module(features, task=task)["sentence_embedding"].numpy()
        assert np.array_equal(signs, 2.0 * hasher.encode(rows).bits() - 1)
    weights = module(features, task="query")
    assert np.array_equal(
        weights["sentence_embedding"], hasher.project_queries(rows).astype(np.float32)
    )
    assert weights["x"] == 1
    assert torch.equal(features["sentence_embedding"], torch.from_numpy(rows))


def test_a_saved_module_encodes_as_before(hasher, rng, tmp_path):
    rows = {"sentence_embedding": torch.from_numpy(rng.standard_normal((9, 12)).astype("f"))}
    CodeModule(hasher).save(str(tmp_path))
    again = CodeModule.load(str(tmp_path.parent), tmp_path.name)
    for task in ("query", "document"):
        before, after = (m(rows, task=task) for m in (CodeModule(hasher), again))
        assert torch.equal(before["sentence_embedding"], after["sentence_embedding"])


@needs_package
def test_packed_documents_are_the_codes_of_the_hasher(model, hasher):
    vectors = model.encode(TEXTS)
    ending = append_hasher(model, hasher)
    assert ending.get_embedding_dimension() == 20
    for precision in ("binary", "ubinary"):
        packed = ending.encode_document(TEXTS, precision=precision)
        assert read_codes(packed, 20) == BinaryCodes(hasher.transform(vectors), 20)
    weights = ending.encode_query(TEXTS[:3])
    assert np.array_equal(weights, hasher.project_queries(vectors[:3]).astype(np.float32))
    assert np.array_equal(model.encode(TEXTS), vectors)  # the model given is as it was


@needs_package
def test_semantic_search_ranks_as_search_real(model, hasher):
    from sentence_transformers import util

    ending = append_hasher(model, hasher)
    weights, documents = ending.encode_query(TEXTS[:5]), ending.encode_document(TEXTS)
    hits = util.semantic_search(weights, documents, top_k=8, score_function=util.dot_score)
    index = HammingIndex(20)
    index.add(BinaryCodes.from_bits(documents > 0))
    scores, ids = index.search_real(weights, k=8)
    assert np.allclose([[hit["score"] for hit in row] for row in hits], scores, atol=1e-4)
    assert np.allclose(ending.similarity(weights, documents).numpy().max(axis=1), scores[:, 0])
    assert all(hit["corpus_id"] in row for hit, row in zip((h[0] for h in hits), ids, strict=True))


@needs_package
def test_a_saved_model_keeps_its_hasher(model, hasher, tmp_path):

    ending = append_hasher(model, hasher)
    ending.save(str(tmp_path / "saved"), create_model_card=False)
    again = load_model(tmp_path / "saved")
    assert np.array_equal(again.encode_query(TEXTS), ending.encode_query(TEXTS))
    assert np.array_equal(again.encode(TEXTS), ending.encode(TEXTS))


@needs_package
def test_what_does_not_fit_together_is_refused(model, hasher, rng):
    with pytest.raises(InputError, match="must be a SentenceTransformer, got int"):
        append_hasher(3, hasher)
    with pytest.raises(InputError, match="must be a fitted method of rankbits"):
        append_hasher(model, methods.get("lsh"))
    other = methods.get("lsh", n_bits=8, random_state=0).fit(rng.standard_normal((30, 8)))
    with pytest.raises(InputError, match="must read the 20 features that model gives"):
        append_hasher(append_hasher(model, hasher), other)


@pytest.mark.skipif(IS_INSTALLED, reason="sentence-transformers is installed")
def test_without_the_package_the_extra_is_named(hasher):
    with pytest.raises(MissingExtraError, match=r"rankbits\[text\]"):
        append_hasher(None, hasher)


@needs_package
@pytest.mark.parametrize("n_bits", [1, 8, 12, 64])
def test_binary_embeddings_are_read_as_the_signs_of_the_vectors(rng, n_bits):
    from sentence_transformers.util import quantize_embeddings

    vectors = rng.standard_normal((30, n_bits)).astype(np.float32)
    for precision in ("binary", "ubinary"):
        codes = read_codes(quantize_embeddings(vectors, precision), n_bits)
        assert codes == BinaryCodes.from_logits(vectors)


def test_one_embedding_is_one_code():
    assert read_codes(np.array([-128, 127], np.int8)) == BinaryCodes.from_bits([[0] * 8 + [1] * 8])


@pytest.mark.parametrize(
    ("embeddings", "n_bits", "says"),
    [
        (np.zeros((2, 3), np.float32), None, "int8 or uint8 of shape"),
        (np.zeros((2, 3, 1), np.int8), None, "int8 or uint8 of shape"),
        (np.zeros((2, 384), np.int8), 384, "must have 48 bytes for 384 bits, got 384"),
        (np.full((1, 1), 127, np.int8), 7, "bits"),
    ],
)
def test_what_is_no_code_is_refused(embeddings, n_bits, says):
    with pytest.raises(InputError, match=says):
        read_codes(embeddings, n_bits)
