"""All that can be done with a collection, each thing on a folder that may be hostile."""

import numpy as np
from hostile_rows import pick

from rankbits.errors import RankbitsError
from rankbits.index import Collection, HammingIndex


class Wrong(Exception):
    """A result that cannot be."""


class Twice(Wrong):
    """An id that is there twice; opening need not notice that, but a check must."""


def codes_for(rng, n, n_bits):
    return np.packbits(rng.integers(0, 2, (n, n_bits), dtype=np.uint8), axis=1)


def factors_for(rng, index, n):
    """The factors that items of an index need, as arguments."""
    if not index.has_factors:
        return {}
    return {"factors": rng.integers(0, 256, (n, 2), dtype=np.uint8)}


def check_results(index, rng):
    """Search, and compare what comes with the codes that the index itself gives out."""
    n_bits, ids = index.n_bits, index.ids
    width = -(-n_bits // 8)
    if (ids < 0).any() or (np.diff(ids) < 0).any() or len(ids) != len(index):
        raise Wrong("ids are negative, or do not ascend, or are not as many as there are items")
    if (np.diff(ids) == 0).any():
        raise Twice("an id is there twice, and a check passes")
    codes = index.codes().packed
    if codes.shape != (len(ids), width):
        raise Wrong(f"codes have shape {codes.shape}, there are {len(ids)} ids")
    if n_bits % 8 and (codes[:, -1] & 0xFF >> n_bits % 8).any():
        raise Wrong("codes have bits beyond their length")
    queries = codes_for(rng, 2, n_bits)
    distances = np.bitwise_count(queries[:, None] ^ codes[None]).sum(axis=2, dtype=np.int64)
    table, names = index.search(queries, 4)
    ragged = index.within(queries, n_bits // 2)
    for row in range(2):
        right = sorted(zip(distances[row].tolist(), ids.tolist(), strict=True))
        nearest = [
            pair
            for pair in zip(table[row].tolist(), names[row].tolist(), strict=True)
            if pair[1] >= 0
        ]
        if nearest != right[:4]:
            raise Wrong(f"the nearest are {nearest}, and should be {right[:4]}")
        near = slice(ragged.offsets[row], ragged.offsets[row + 1])
        pairs = list(zip(ragged.distances[near].tolist(), ragged.ids[near].tolist(), strict=True))
        if pairs != [pair for pair in right if pair[0] <= n_bits // 2]:
            raise Wrong("the items within a radius are others")
    check_real_results(index, codes, rng)


def check_real_results(index, codes, rng):
    """Search by small whole numbers, whose sums are exact, with factors where there are any."""
    ids, weights = index.ids, rng.integers(-8, 9, (1, index.n_bits))
    bits = np.unpackbits(codes, axis=1, count=index.n_bits).astype(np.int64)
    scores = (2 * bits - 1) @ weights[0]
    right = sorted(zip((-scores).tolist(), ids.tolist(), strict=True))[:4]
    table, names = index.search_real(weights, 4)
    best = [(-s, i) for s, i in zip(table[0].tolist(), names[0].tolist(), strict=True) if i >= 0]
    if best != right:
        raise Wrong(f"the best by real numbers are {best}, and should be {right}")
    if index.has_factors and index.factors(ids).shape != (len(ids), 2):
        raise Wrong("there are not two factors for each item")


def read_collection(folder, rng):
    with Collection.open(folder) as collection:
        check_results(collection, rng)
        collection.info()
        repr(collection)
        len(collection)


def check_collection(folder, rng):
    with Collection.open(folder) as collection:
        collection.check()


def read_unverified(folder, rng):
    with Collection.open(folder, verify=False) as collection:
        check_results(collection, rng)


def copy_collection(folder, rng):
    with Collection.open(folder) as collection:
        collection.snapshot(folder.parent / "snapshot", link=bool(rng.integers(2)))
    read_collection(folder.parent / "snapshot", rng)


def load_mapped(folder, rng):
    check_results(HammingIndex.load(folder), rng)


def load_into_memory(folder, rng):
    index = HammingIndex.load(folder, mmap=False, kind="mih")
    check_results(index, rng)
    index.add(codes_for(rng, 3, index.n_bits), **factors_for(rng, index, 3))
    index.save(folder.parent / "saved")


def write_collection(folder, rng):
    with Collection.open(folder, writable=True) as collection:
        codes = codes_for(rng, 3, collection.n_bits)
        factors = factors_for(rng, collection, len(codes))
        ids = collection.add(codes, **factors)
        collection.remove(ids[:1])
        if len(collection.ids):
            one = {name: values[:1] for name, values in factors.items()}
            collection.upsert(codes[:1], ids=collection.ids[:1], **one)
        collection.seal()
        collection.compact()
        check_results(collection, rng)


def save_over(folder, rng):
    index = HammingIndex(8)
    index.add(codes_for(rng, 3, 8))
    index.save(folder)


def create_over(folder, rng):
    Collection.create(folder, 8).close()


READS = (check_collection, read_unverified, copy_collection, load_mapped, load_into_memory)
WRITES = (write_collection, write_collection, save_over, create_over)


def uses_of(rng):
    """What is done in one case; what writes comes last, and works on what is left."""
    first, second = rng.choice(len(READS), 2, replace=False)
    return (read_collection, READS[first], READS[second], pick(rng, WRITES))


def passes_check(folder):
    try:
        check_collection(folder, None)
    except RankbitsError:
        return False
    return True
