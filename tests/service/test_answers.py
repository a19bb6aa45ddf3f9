"""Answers are those of the collection itself, to the last bit, in either form."""

import threading

import httpx
import numpy as np
import pytest

from rankbits import index
from rankbits.client import Client
from rankbits.index import Collection
from rankbits.service import create_app
from service.conftest import N_BITS, running
from service.problems import assert_problem, post


@pytest.fixture(scope="module")
def url(folder):
    with running(create_app(folder.path / "collection", **folder.settings)) as address:
        yield address


@pytest.fixture(scope="module")
def client(url):
    with Client(url) as connected:
        yield connected


@pytest.fixture(scope="module")
def collection(folder):
    with Collection.open(folder.path / "collection") as opened:
        yield opened


def lists(values, ids):
    """Rows without the places that are left over, as JSON has them."""
    rows = [(v[i >= 0].tolist(), i[i >= 0].tolist()) for v, i in zip(values, ids, strict=True)]
    return [v for v, _ in rows], [i for _, i in rows]


def hex_of(codes):
    return [row.tobytes().hex() for row in codes.packed]


@pytest.mark.parametrize("k", [1, 7, 10, 1000])
@pytest.mark.parametrize("way", ["codes", "vectors", "ids"])
def test_nearest_items(folder, url, client, collection, way, k):
    x, codes, ids = folder.data.query_x[:5], folder.queries[:5], [4, 0, 1499]
    given = {"codes": codes, "vectors": x, "ids": ids}[way]
    expected = collection.search(collection.codes(ids) if way == "ids" else codes, k)
    answer = client.search(**{way: given}, k=k)
    assert np.array_equal(answer.distances, expected[0])
    assert np.array_equal(answer.ids, expected[1])
    assert answer.distances.dtype == np.int32
    json_rows = {"codes": hex_of(codes), "vectors": x.tolist(), "ids": ids}[way]
    content = post(url, "/search", {way: json_rows, "k": k}).json()
    assert (content["distances"], content["ids"]) == lists(*expected)


def test_the_default_is_ten_items_by_bits(folder, url, collection):
    content = post(url, "/search", {"vectors": folder.data.query_x[:1].tolist()}).json()
    assert content["ids"] == lists(*collection.search(folder.queries[:1], 10))[1]
    assert set(content) == {"ids", "distances", "milliseconds"}


@pytest.mark.parametrize("radius", [0, 3, 9])
def test_everything_within_a_radius(folder, url, client, collection, radius):
    expected = collection.within(folder.queries[:6], radius)
    answer = client.search(codes=folder.queries[:6], radius=radius)
    for mine, theirs in zip((answer.offsets, answer.distances, answer.ids), expected, strict=True):
        assert np.array_equal(mine, theirs)
    content = post(url, "/search", {"codes": hex_of(folder.queries[:6]), "radius": radius}).json()
    ends = zip(expected.offsets[:-1], expected.offsets[1:], strict=True)
    assert content["ids"] == [expected.ids[a:b].tolist() for a, b in ends]


def test_k_and_radius_together_are_the_k_nearest_within_the_radius(folder, url, collection):
    distances, ids = collection.search(folder.queries[:9], 20)
    body = {"codes": hex_of(folder.queries[:9]), "k": 20, "radius": 4}
    content = post(url, "/search", body).json()
    for q in range(9):
        is_near = distances[q] <= 4
        assert content["ids"][q] == ids[q][is_near].tolist()
        assert content["distances"][q] == distances[q][is_near].tolist()


def test_complete_ties(folder, client, collection):
    expected = collection.search(folder.queries[:9], 3, ties="complete")
    answer = client.search(codes=folder.queries[:9], k=3, ties="complete")
    assert len(answer.ids) > 27
    for mine, theirs in zip((answer.offsets, answer.distances, answer.ids), expected, strict=True):
        assert np.array_equal(mine, theirs)


def test_filters_by_ids_and_by_labels(folder, client, collection):
    rng, codes = np.random.default_rng(0), folder.queries[:4]
    allowed = rng.choice(1500, 300, replace=False)
    labelled = np.flatnonzero(np.isin(folder.data.database_y, [3, 8]))
    cases = [
        ({"allowed": allowed}, allowed),
        ({"labels": ["3", "8"]}, labelled),
        ({"labels": ["3", "8"], "allowed": allowed}, np.intersect1d(allowed, labelled)),
        ({"allowed": []}, []),
    ]
    for settings, ids in cases:
        expected = collection.search(codes, 12, allowed=np.array(ids, np.int64))
        answer = client.search(codes=codes, k=12, **settings)
        assert np.array_equal(answer.ids, expected[1])
        assert np.array_equal(answer.distances, expected[0])
        counts = client.search(codes=codes, k=1, histogram=True, **settings).histogram
        assert counts.sum(axis=1).tolist() == [len(ids)] * 4


@pytest.mark.parametrize("n", [1, 5])
def test_real_valued_queries(folder, url, client, collection, n):
    x = folder.data.query_x[:n]
    expected = collection.search_real(folder.hasher.project_queries(x), 13)
    answer = client.search(vectors=x, k=13, by="weights")
    assert np.array_equal(answer.distances, -expected[0])
    assert np.array_equal(answer.ids, expected[1])
    content = post(url, "/search", {"vectors": x.tolist(), "k": 13, "by": "weights"}).json()
    assert (content["distances"], content["ids"]) == lists(-expected[0], expected[1])
    filtered = client.search(vectors=x, k=13, by="weights", allowed=np.arange(0, 1500, 3))
    weights = folder.hasher.project_queries(x)
    expected = collection.search_real(weights, 13, allowed=np.arange(0, 1500, 3))
    assert np.array_equal(filtered.distances, -expected[0])
    assert np.array_equal(filtered.ids, expected[1])


def test_items_as_real_valued_queries_are_their_vectors(folder, client, collection):
    weights = folder.hasher.project_queries(folder.data.database_x[[7, 2]])
    answer = client.search(ids=[7, 2], k=5, by="weights")
    assert np.array_equal(answer.ids, collection.search_real(weights, 5)[1])


@pytest.mark.parametrize("pool", [None, 40])
@pytest.mark.parametrize("rerank", ["weights", "weighted_bits", "vectors"])
def test_finer_distances(folder, client, collection, rerank, pool):
    x, codes = folder.data.query_x[:4], folder.queries[:4]
    weights = np.linspace(0.5, 2, N_BITS)
    finer = {
        "weights": index.asymmetric(folder.hasher.project_queries(x)),
        "weighted_bits": index.weighted_bits(weights),
        "vectors": index.vectors(folder.data.database_x, x, "cosine"),
    }[rerank]
    settings = {"weights": weights} if rerank == "weighted_bits" else {}
    settings |= {"similarity": "cosine"} if rerank == "vectors" else {}
    settings |= {} if pool is None else {"pool": pool}
    distances, ids = collection.search(codes, 8, rerank=finer, pool=pool)
    answer = client.search(vectors=x, k=8, rerank=rerank, **settings)
    assert np.array_equal(answer.distances, distances)
    assert np.array_equal(answer.ids, ids)


def test_what_the_page_shows_is_counted_by_brute_force(folder, url):
    include = ["codes", "fields", "histogram"]
    body = {"vectors": folder.data.query_x[:2].tolist(), "k": 3, "include": include}
    content = post(url, "/search", body).json()
    bits, items = folder.queries[:2].bits(), folder.codes.bits()
    distances = (bits[:, None] != items[None]).sum(axis=2)
    for q in range(2):
        assert content["histogram"][q] == np.bincount(distances[q], minlength=33).tolist()
        assert content["codes"][q] == hex_of(folder.codes[content["ids"][q]])
        labels = [fields["label"] for fields in content["fields"][q]]
        assert labels == [str(folder.data.database_y[item]) for item in content["ids"][q]]
    assert content["query_codes"] == hex_of(folder.queries[:2])


def test_a_score_that_no_number_holds_is_null(folder, url):
    body = {"vectors": [[1e160] * 64], "rerank": "vectors", "similarity": "l2", "k": 2}
    content = post(url, "/search", body).json()
    assert content["distances"] == [[None, None]]


@pytest.mark.parametrize("settings", [{}, {"by": "weights"}])
def test_vectors_beyond_all_numbers_are_refused(url, settings):
    body = {"vectors": [[1e308, -1e308] * 32], **settings}
    assert_problem(post(url, "/search", body), 422)


def test_many_at_once_get_what_each_would_get_alone(folder, url, collection):
    answers = {}

    def ask(place):
        k = 1 + place % 17
        with Client(url) as own:
            answers[place] = k, own.search(codes=folder.queries[place : place + 1 + place % 3], k=k)

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 60
    for place, (k, answer) in answers.items():
        expected = collection.search(folder.queries[place : place + 1 + place % 3], k)
        assert np.array_equal(answer.distances, expected[0])
        assert np.array_equal(answer.ids, expected[1])


def brute_force(state, code, k):
    """Distances and ids of the k nearest in a dictionary of packed codes."""
    order = sorted((int(np.bitwise_count(one ^ code).sum()), item) for item, one in state.items())
    return [list(column) for column in zip(*order[:k], strict=True)]


def test_while_a_writer_changes_it_every_answer_is_of_one_moment(folder, tmp_path):
    rng = np.random.default_rng(1)
    states, n_committed, is_done = [], 0, threading.Event()
    with Collection.create(tmp_path / "living", 16) as writer:
        start = rng.integers(0, 256, (40, 2), np.uint8)
        writer.add(start)
        states.append(dict(enumerate(start)))
        with running(create_app(tmp_path / "living")) as address:

            def change():
                nonlocal n_committed
                while not is_done.is_set():
                    ids = rng.choice(60, 5, replace=False)
                    codes = rng.integers(0, 256, (5, 2), np.uint8)
                    new = states[-1] | dict(zip(ids.tolist(), codes, strict=True))
                    states.append(new)  # before it is committed: a reader may see it at once
                    writer.upsert(codes, ids=ids)
                    n_committed += 1

            thread = threading.Thread(target=change)
            thread.start()
            try:
                seen = set()
                with httpx.Client(base_url=address) as http:
                    for _ in range(80):
                        code, first = rng.integers(0, 256, 2, np.uint8), n_committed
                        body = {"codes": [code.tobytes().hex()], "k": 6}
                        content = http.post("/search", json=body).json()
                        expected = [brute_force(one, code, 6) for one in states[first:]]
                        answer = [content["distances"][0], content["ids"][0]]
                        assert answer in expected
                        seen.add(first + expected.index(answer))
            finally:
                is_done.set()
                thread.join()
    assert len(seen) > 5


def test_factors_correct_scores(folder, tmp_path):
    from rankbits.methods import RaBitQ

    x = folder.data.database_x
    hasher = RaBitQ(n_bits=64, random_state=0).fit(x)
    with Collection.create(tmp_path / "c", 64, factors=True) as collection:
        collection.add(hasher.encode(x), factors=hasher.factors(x))
        weights = hasher.project_queries(folder.data.query_x[:3])
        expected = collection.search_real(weights, 7, correction=hasher.correction())
    with running(create_app(tmp_path / "c", hasher)) as address, Client(address) as client:
        answer = client.search(vectors=folder.data.query_x[:3], k=7, by="weights")
        assert np.array_equal(answer.distances, -expected[0])
        assert np.array_equal(answer.ids, expected[1])


def test_a_model_with_two_maps_encodes_items_as_queries_by_their_vectors(folder, tmp_path):
    from rankbits import methods

    x = folder.data.database_x[:200]
    hasher = methods.get("distilled", n_bits=16, n_steps=5, random_state=0).fit(x)
    with Collection.create(tmp_path / "c", 16) as collection:
        collection.add(hasher.encode(x))
        assert collection.side == "items"
        expected = collection.search(hasher.encode_queries(x[[3]]), 4)[1]
    with running(create_app(tmp_path / "c", hasher)) as address:
        assert_problem(post(address, "/search", {"ids": [3]}), 422, "--vectors")
        assert "ids" not in httpx.get(address + "/stats").json()["accepts"]
    with running(create_app(tmp_path / "c", hasher, vectors=x)) as address:
        content = post(address, "/search", {"ids": [3], "k": 4}).json()
        assert content["ids"] == expected.tolist()


def test_codes_of_the_model_are_those_of_encode(folder, url, client):
    x = folder.data.query_x[:3]
    assert client.encode(x) == folder.codes.__class__(
        folder.hasher.transform(x), N_BITS, folder.codes.model
    )
    assert np.array_equal(client.encode(x, side="weights"), folder.hasher.project_queries(x))
    content = post(url, "/encode", {"vectors": x.tolist(), "as": "queries"}).json()
    assert content["codes"] == hex_of(folder.hasher.encode_queries(x))
    assert content["bits"] == N_BITS
