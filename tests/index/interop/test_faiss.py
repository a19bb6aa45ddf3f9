"""faiss holds what was handed over, finds the same distances, and gives everything back."""

import numpy as np
import pytest

from rankbits.errors import FileFormatError, InputError
from rankbits.index import HammingIndex
from rankbits.index.interop import from_faiss, to_faiss

faiss = pytest.importorskip("faiss")


def filled(made, packed, ids=None):
    if not made.is_trained:
        made.train(packed)
    made.add(packed) if ids is None else made.add_with_ids(packed, ids)
    return made


def inverted(n_bits=64):
    return faiss.IndexBinaryIVF(faiss.IndexBinaryFlat(n_bits), n_bits, 3)


@pytest.mark.parametrize("n_bits", [8, 64, 128])
def test_a_round_trip_keeps_ids_and_codes_and_faiss_finds_the_nearest(stock, n_bits):
    mine = stock(n_bits)
    made = to_faiss(mine.index)
    assert isinstance(made, faiss.IndexBinaryIDMap2)
    assert mine.are_nearest(20, *made.search(mine.queries, 20))
    assert mine.are_nearest(20, *mine.index.search(mine.queries, 20))
    assert mine.is_in(from_faiss(made))


def test_codes_that_do_not_fill_bytes_need_padding_which_changes_no_distance(stock):
    mine = stock(12)
    with pytest.raises(InputError, match="multiple of 8 bits for faiss, got 12; pass pad=True"):
        to_faiss(mine.index)
    made = to_faiss(mine.index, pad=True)
    assert made.d == 16
    assert mine.are_nearest(15, *made.search(mine.queries, 15))
    assert mine.is_in(from_faiss(made, n_bits=12))
    assert from_faiss(made).n_bits == 16


def test_bits_that_are_set_beyond_n_bits_are_refused():
    made = filled(faiss.IndexBinaryFlat(16), np.array([[255, 255]], np.uint8))
    with pytest.raises(InputError, match="the faiss index cannot be read as codes of 12 bits"):
        from_faiss(made, n_bits=12)
    with pytest.raises(InputError, match="n_bits is 24, but the faiss index holds codes of 2 byte"):
        from_faiss(made, n_bits=24)


def test_ids_from_0_without_gaps_need_no_map(stock):
    packed = stock(64).queries
    index = HammingIndex(64)
    index.add(packed)
    made = to_faiss(index)
    assert type(made) is faiss.IndexBinaryFlat
    assert np.array_equal(made.reconstruct_n(0, made.ntotal), packed)
    assert from_faiss(made, kind="scan").kind == "scan"


def test_an_empty_index_stays_empty(empty):
    made = to_faiss(empty)
    assert (made.ntotal, made.d) == (0, 16)
    back = from_faiss(made)
    assert (len(back), back.n_bits) == (0, 16)


def test_more_items_than_a_block_come_back_in_order(monkeypatch, stock):
    mine = stock(64)
    for module in ("blocks", "faiss"):
        monkeypatch.setattr(f"rankbits.index.interop.{module}.BLOCK", 7)
    assert mine.is_in(from_faiss(to_faiss(mine.index)))


def flat():
    return faiss.IndexBinaryFlat(64)


@pytest.mark.parametrize(
    "make",
    [
        flat,
        inverted,
        lambda: faiss.IndexBinaryHNSW(64, 8),
        lambda: faiss.IndexBinaryMultiHash(64, 3, 8),
    ],
    ids=["flat", "ivf", "hnsw", "multihash"],
)
@pytest.mark.parametrize("is_file", [False, True], ids=["memory", "file"])
@pytest.mark.parametrize("is_named", [False, True], ids=["numbered", "named"])
def test_every_index_that_keeps_its_codes_is_read(make, is_file, is_named, tmp_path):
    packed = np.random.default_rng(3).integers(0, 256, (200, 8), np.uint8)
    ids = np.arange(200) * 5 + 2**33 if is_named else None
    inner = make()
    made = filled(faiss.IndexBinaryIDMap(inner) if is_named else inner, packed, ids)
    if is_file:
        faiss.write_index_binary(made, str(tmp_path / "file"))
        made = tmp_path / "file"
    back = from_faiss(made)
    assert back.ids.tolist() == (list(range(200)) if ids is None else ids.tolist())
    assert np.array_equal(back.codes().packed, packed)


def test_an_ivf_index_with_its_own_ids_and_empty_lists_is_read():
    packed = np.random.default_rng(3).integers(0, 256, (200, 8), np.uint8)
    made = filled(inverted(), packed, np.arange(200)[::-1] * 2)
    made.remove_ids(np.arange(0, 398, 2))
    assert sorted(made.invlists.list_size(i) for i in range(3)) == [0, 0, 1]
    back = from_faiss(made)
    assert back.ids.tolist() == [398]
    assert np.array_equal(back.codes().packed, packed[:1])


@pytest.mark.parametrize("ids", [[4, 4], [-1, 3]])
def test_ids_that_an_index_cannot_have_are_refused(ids):
    made = faiss.IndexBinaryIDMap(flat())
    made.add_with_ids(np.zeros((2, 8), np.uint8), np.array(ids))
    with pytest.raises(InputError, match=r"the faiss index cannot be read .* ids must"):
        from_faiss(made)


def test_an_index_that_lost_names_is_refused():
    made = faiss.IndexBinaryIDMap(inner := flat())
    made.add_with_ids(np.zeros((2, 8), np.uint8), np.array([5, 6]))
    inner.add(np.zeros((1, 8), np.uint8))
    with pytest.raises(InputError, match="it has 2 ids and none for row 2; rebuild it"):
        from_faiss(made)


def test_an_index_of_another_kind_is_refused_by_name():
    with pytest.raises(InputError, match=r"must be an IndexBinaryFlat, .* got IndexBinaryHash"):
        from_faiss(faiss.IndexBinaryHash(64, 8))
    with pytest.raises(
        InputError, match="must be a binary index of faiss or a path, got IndexFlat"
    ):
        from_faiss(faiss.IndexFlatL2(4))


def test_damaged_foreign_and_missing_files_are_named(stock, tmp_path):
    path = tmp_path / "index.faiss"
    faiss.write_index_binary(to_faiss(stock(64).index), str(path))
    whole = path.read_bytes()
    for size in (0, 3, 20, 40, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(FileFormatError, match=r"index.faiss is not a binary index of faiss"):
            from_faiss(path)
    path.write_text("something else")
    with pytest.raises(FileFormatError, match=r"index.faiss is not a binary index of faiss"):
        from_faiss(str(path))
    with pytest.raises(InputError, match=r"there is no .*nowhere"):
        from_faiss(tmp_path / "nowhere")
