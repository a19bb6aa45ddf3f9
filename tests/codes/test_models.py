"""Codes carry the fingerprint of their model, and codes of two models are not compared."""

import pickle

import numpy as np
import pytest

import rankbits
from oracles.counting import random_codes
from rankbits import BinaryCodes, affinity
from rankbits.codes import hamming_distances
from rankbits.errors import InputError


def codes_of(rng, model, n=6, n_bits=12):
    return BinaryCodes(random_codes(rng, n, n_bits).packed, n_bits, model)


def test_the_model_survives_slices_and_pickles(rng):
    codes = codes_of(rng, "a")
    parts = (codes[:2], codes[3], codes[[1, 5]], codes[np.arange(6) > 2], next(iter(codes)))
    for same in (*parts, pickle.loads(pickle.dumps(codes))):
        assert same.model == "a"
    assert BinaryCodes(codes.packed, 12).model is None
    assert codes == BinaryCodes(codes.packed, 12)


def test_codes_of_two_models_are_not_compared(rng):
    queries, database = codes_of(rng, "first"), codes_of(rng, "second" * 9)
    labels = affinity.classes(np.arange(6), np.arange(6))
    for compare in (
        lambda: hamming_distances(queries, database),
        lambda: rankbits.count_ties(queries, database, labels),
        lambda: rankbits.evaluate(queries, database, labels),
        lambda: rankbits.evaluate(queries, database, labels, ["LGAP@r2"]),
    ):
        with pytest.raises(
            InputError,
            match=r"queries come from model first and database from model secondsecond\.\.\.",
        ):
            compare()


def test_an_unknown_model_on_either_side_is_no_error(rng):
    known, unknown = codes_of(rng, "a"), codes_of(rng, None)
    for queries, database in ((known, unknown), (unknown, known), (known, known)):
        assert hamming_distances(queries, database).shape == (6, 6)


def test_joined_codes_have_the_model_that_is_known(rng):
    known, unknown = codes_of(rng, "a"), codes_of(rng, None)
    both = BinaryCodes.concatenate([unknown, known])
    assert both.model == "a"
    assert np.array_equal(both.packed, np.concatenate([unknown.packed, known.packed]))
    with pytest.raises(InputError, match=r"come from model a and others from model b"):
        BinaryCodes.concatenate([unknown, known, codes_of(rng, "b")])
    with pytest.raises(InputError, match=r"one length, got 12 and 13 bits"):
        BinaryCodes.concatenate([known, codes_of(rng, "a", n_bits=13)])
    with pytest.raises(InputError, match="at least one"):
        BinaryCodes.concatenate([])


def emulated_quantization(embeddings, precision):
    """What quantize_embeddings of sentence-transformers computes for the two binary precisions."""
    packed = np.packbits(embeddings > 0).reshape(len(embeddings), -1)
    return packed if precision == "ubinary" else (packed - 128).astype(np.int8)


def test_codes_of_sentence_transformers_are_taken_with_the_advice_of_the_error(rng):
    embeddings = rng.standard_normal((40, 64))
    expected = BinaryCodes.from_logits(embeddings)
    assert BinaryCodes(emulated_quantization(embeddings, "ubinary"), 64) == expected
    signed = emulated_quantization(embeddings, "binary")
    with pytest.raises(InputError, match=r"precision='binary'.*BinaryCodes\.from_int8\(codes"):
        BinaryCodes(signed, 64)
    assert BinaryCodes.from_int8(signed) == BinaryCodes.from_int8(signed, 64) == expected
    with pytest.raises(InputError, match=r"codes must be int8 of shape \(n, bytes\), got uint8"):
        BinaryCodes.from_int8(expected.packed)
    with pytest.raises(InputError, match="must end in 1 zero bits"):
        BinaryCodes.from_int8(signed, 63)


@pytest.mark.parametrize("array", [np.zeros((3, 2), np.uint8), [[0, 1]], "codes.npy"])
def test_what_is_no_codes_is_refused_with_the_call_that_makes_them(rng, array):
    codes, labels = codes_of(rng, None), affinity.classes(np.arange(3), np.arange(6))
    for compare in (rankbits.count_ties, rankbits.evaluate):
        for pair in ((array, codes), (codes, array)):
            with pytest.raises(
                InputError, match=r"must be BinaryCodes.*BinaryCodes\(packed, n_bits\)"
            ):
                compare(*pair, labels)
