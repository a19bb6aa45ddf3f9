"""One search: whatever is asked for, every door gives what brute force over all items gives."""

from itertools import product

import numpy as np
import pytest

from rankbits import BinaryCodes
from rankbits.codes import Queries
from rankbits.errors import InputError
from rankbits.index import (
    Collection,
    HammingIndex,
    SearchPlan,
    TablesIndex,
    asymmetric,
    engines,
    vectors,
    weighted_bits,
)

N, N_BITS, K = 700, 18, 9
DOORS = ("index", "collection", "tables")


class World:
    """Items and queries, with two tables of codes."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.rows = rng.integers(-3, 4, (N, 5)).astype(np.float32)
        self.ids = rng.permutation(3 * N)[:N]
        self.tables = rng.integers(0, 2, (2, N, N_BITS))
        self.weights = rng.integers(-3, 4, (2, 6, N_BITS)).astype(float)
        self.query_rows = rng.integers(-3, 4, (6, 5)).astype(np.float32)
        self.bit_weights = rng.integers(0, 4, N_BITS).astype(float)
        self.allowed = np.sort(rng.permutation(self.ids)[:200])

    def queries(self, table):
        weights = self.weights[table]
        return Queries(BinaryCodes.from_logits(weights), weights, self.query_rows)

    def distances(self, what, n_tables):
        """Distance of every item, the smallest over the tables."""
        if what == "vectors":
            gaps = self.query_rows[:, None].astype(float) - self.rows
            return np.sqrt((gaps**2).sum(axis=2))
        each = []
        for bits, weights in zip(self.tables[:n_tables], self.weights[:n_tables], strict=True):
            if what == "weights":
                each.append(-(weights @ (2.0 * bits - 1).T))
                continue
            differs = (weights > 0)[:, None] != (bits == 1)
            scale = self.bit_weights if what == "weighted_bits" else np.ones(N_BITS)
            each.append((differs * scale).sum(axis=2))
        return np.minimum.reduce(each)


@pytest.fixture(scope="module")
def world():
    return World(4)


@pytest.fixture(scope="module")
def doors(world, tmp_path_factory):
    codes = [BinaryCodes.from_bits(bits) for bits in world.tables]
    index, tables = HammingIndex(N_BITS), TablesIndex(N_BITS, 2)
    collection = Collection.create(tmp_path_factory.mktemp("door") / "c", N_BITS)
    for part in (slice(0, 400), slice(400, N)):
        index.add(codes[0][part], world.ids[part])
        collection.add(codes[0][part], world.ids[part])
        tables.add([one[part] for one in codes], world.ids[part])
    with collection:
        yield {"index": index, "collection": collection, "tables": tables}


def nearest(world, distances, candidates, k, radius=np.inf, *, is_complete=False):
    """(distances, ids) of each query, in order, by sorting the candidates."""
    answers = []
    for row, mask in zip(distances.astype(np.float32), candidates, strict=True):
        places = np.flatnonzero(mask & (row <= radius))
        order = places[np.lexsort((world.ids[places], row[places]))]
        if k is not None and len(order) > k:
            order = order[row[order] <= row[order[k - 1]]] if is_complete else order[:k]
        answers.append((row[order].tolist(), world.ids[order].tolist()))
    return answers


def answers_of(matches):
    found = matches.ragged()
    parts = zip(found.offsets[:-1], found.offsets[1:], strict=True)
    return [(found.distances[a:b].tolist(), found.ids[a:b].tolist()) for a, b in parts]


def everything(world, allowed):
    mask = np.ones(N, bool) if allowed is None else np.isin(world.ids, allowed)
    return np.broadcast_to(mask, (6, N))


def asked_of(world, door):
    """Queries as a door takes them, and its number of tables."""
    return ([world.queries(0), world.queries(1)], 2) if door == "tables" else (world.queries(0), 1)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("by", "is_filtered"), [*product(("bits", "weights"), (False, True))])
def test_the_nearest_by_code(world, doors, door, by, is_filtered):
    queries, n_tables = asked_of(world, door)
    allowed = world.allowed if is_filtered else None
    expected = nearest(world, world.distances(by, n_tables), everything(world, allowed), K)
    matches = doors[door].search(queries, K, by=by, allowed=allowed)
    assert answers_of(matches) == expected
    distances, ids = matches
    assert distances.shape == ids.shape == (6, K)
    assert distances.dtype == (np.int32 if by == "bits" else np.float32)


@pytest.mark.parametrize("kind", engines.names())
@pytest.mark.parametrize(("radius", "k"), [*product((0, 4, 6, N_BITS), (None, 1, 20))])
@pytest.mark.parametrize("ties", ["id", "complete"])
def test_the_nearest_within_a_radius(world, doors, kind, radius, k, ties):
    distances = world.distances("bits", 1)
    is_complete = ties == "complete"
    expected = nearest(
        world, distances, everything(world, None), k, radius, is_complete=is_complete
    )
    index = doors["index"]
    index.configure(kind, **({"n_probes": 10_000} if kind == "ivf" else {}))
    matches = index.search(world.queries(0), k, ties, within=radius)
    assert answers_of(matches) == expected
    assert (matches.offsets is None) == (k is not None and not is_complete)
    index.configure("auto")


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("by", ["bits", "weights"])
@pytest.mark.parametrize("rerank", ["vectors", "weights", "weighted_bits"])
@pytest.mark.parametrize("pool", [K, 60, N])
def test_a_pool_by_code_is_put_in_order_of_a_finer_distance(world, doors, door, by, rerank, pool):
    queries, n_tables = asked_of(world, door)
    pools = nearest(world, world.distances(by, n_tables), everything(world, None), pool)
    candidates = [np.isin(world.ids, ids) for _, ids in pools]
    expected = nearest(world, world.distances(rerank, n_tables), candidates, K)
    finer = {
        "vectors": vectors(world.rows, similarity="l2", ids=world.ids),
        "weights": asymmetric(),
        "weighted_bits": weighted_bits(world.bit_weights),
    }[rerank]
    assert answers_of(doors[door].search(queries, K, by=by, rerank=finer, pool=pool)) == expected


@pytest.mark.parametrize("door", DOORS)
def test_a_plan_is_the_search_that_it_describes(world, doors, door):
    queries, _ = asked_of(world, door)
    doors = doors[door]
    items = np.zeros((3 * N, 5), np.float32)
    items[world.ids] = world.rows
    plan = SearchPlan("weights", "vectors", pool=50, similarity="ip")
    expected = doors.search(
        queries, K, by="weights", rerank=vectors(items, similarity="ip"), pool=50
    )
    assert answers_of(plan.search(doors, queries, K, items)) == answers_of(expected)
    more = plan.search(doors, queries, 70, items)  # more than its pool
    assert more.ids.shape == (6, 70)
    for by in ("bits", "weights"):
        found = SearchPlan(by).search(doors, queries, K)
        assert answers_of(found) == answers_of(doors.search(queries, K, by=by))


def test_codes_alone_are_compared_as_bits_and_weights_alone_as_weights(world, doors):
    queries, index = world.queries(0), doors["index"]
    expected = answers_of(index.search(queries, K))
    for alone in (queries.bits, queries.bits.packed, Queries(queries.bits)):
        assert answers_of(index.search(alone, K)) == expected
    by_weights = index.search(Queries(weights=queries.weights), K)
    scores, ids = index.search_real(queries.weights, K)
    assert np.array_equal(by_weights.ids, ids)
    assert np.array_equal(by_weights.distances, -scores)
    assert answers_of(queries_in_parts(index, queries)) == expected


def queries_in_parts(index, queries):
    from rankbits.index.results import together

    return together([index.search(queries[:2], K), index.search(queries[2:], K)])


REFUSED = {
    "no k": ({"k": None}, "k must be an integer >= 1"),
    "by words": ({"by": "words"}, "by must be one of"),
    "ties by weights": ({"by": "weights", "ties": "complete"}, "without ties='complete'"),
    "radius by weights": ({"by": "weights", "within": 3}, "without within"),
    "radius and rerank": ({"within": 3, "rerank": asymmetric()}, "without within"),
    "pool alone": ({"pool": 5}, "pool must come with rerank"),
    "no kind of rerank": ({"rerank": "vectors"}, "rerank must be weighted_bits"),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_by_every_door(world, doors, door, case):
    settings, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        doors[door].search(asked_of(world, door)[0], **{"k": K, **settings})


def test_queries_without_a_form_that_is_needed_are_refused(world, doors):
    index, queries = doors["index"], world.queries(0)
    with pytest.raises(InputError, match="queries must have weights to be compared by weights"):
        index.search(queries.bits, K, by="weights")
    with pytest.raises(InputError, match="queries must have bits to be compared by bits"):
        index.search(Queries(weights=queries.weights), K, by="bits")
    with pytest.raises(InputError, match="queries must have vectors for"):
        index.search(queries.bits, K, rerank=vectors(world.rows, ids=world.ids))
    with pytest.raises(InputError, match="queries must have bits for weighted_bits"):
        index.search(Queries(weights=queries.weights), K, rerank=weighted_bits(world.bit_weights))
    with pytest.raises(InputError, match="queries must be the same in all of their forms, got 6 "):
        Queries(queries.bits, queries.weights[:2])
    with pytest.raises(InputError, match="got none"):
        Queries()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"by": "real"}, "by must be one of"),
        ({"rerank": "cosine"}, "rerank must be one of"),
        ({"pool": 5}, "pool must come with rerank"),
        ({"rerank": "vectors", "pool": 0}, "pool must be an integer >= 1"),
        ({"similarity": "dot"}, "similarity must be one of"),
    ],
)
def test_a_plan_is_checked_when_it_is_made(settings, message):
    with pytest.raises(InputError, match=message):
        SearchPlan(**settings)


def test_a_plan_with_vectors_must_be_given_them(world, doors):
    with pytest.raises(InputError, match="items must be given"):
        SearchPlan(rerank="vectors").search(doors["index"], world.queries(0), K)
