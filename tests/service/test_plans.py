"""A server with a plan: searches that say nothing follow it, and each field stands in its place."""

import httpx
import numpy as np
import pytest

from rankbits import compress, index
from rankbits.client import Client
from rankbits.index import Collection, SearchPlan
from rankbits.service import create_app
from service.conftest import running
from service.problems import assert_problem

PLAN = SearchPlan("weights", "vectors", pool=40, similarity="cosine")


@pytest.fixture(scope="module")
def planned(folder):
    app = create_app(folder.path / "collection", **folder.settings, plan=PLAN)
    with running(app) as url:
        yield url


@pytest.fixture(scope="module")
def client(folder):
    app = create_app(folder.path / "collection", **folder.settings)
    with running(app) as url, Client(url) as one:
        yield one


@pytest.fixture(scope="module")
def collection(folder):
    with Collection.open(folder.path / "collection") as one:
        yield one


def by_hand(folder, collection, n, k, pool):
    """The plan, step by step: a pool by weights, then the cosine."""
    x, items = folder.data.query_x[:n], folder.data.database_x
    _, pools = collection.search_real(folder.hasher.project_queries(x), pool)
    answers = []
    for row, candidates in zip(x, pools, strict=True):
        near = items[candidates]
        cosines = near @ row / np.linalg.norm(near, axis=1) / np.linalg.norm(row)
        distances = (1 - cosines).astype(np.float32)
        answers.append(candidates[np.lexsort((candidates, distances))][:k])
    return np.array(answers)


def test_vectors_alone_are_searched_by_the_plan(folder, planned, collection):
    x = folder.data.query_x[:5]
    expected = by_hand(folder, collection, 5, 7, 40)
    with Client(planned) as client:
        assert np.array_equal(client.search(vectors=x, k=7).ids, expected)
        fewer = client.search(vectors=x, k=7, pool=9).ids
    assert np.array_equal(fewer, by_hand(folder, collection, 5, 7, 9))
    ids = httpx.post(f"{planned}/search", json={"ids": [3], "k": 4}).json()["ids"]
    assert ids[0][0] == 3


def test_fields_stand_in_place_of_the_plan(folder, planned, collection):
    x, codes = folder.data.query_x[:4], folder.queries[:4]
    with Client(planned) as client:
        bits = client.search(vectors=x, k=6, by="bits", rerank="none")
        weights = client.search(vectors=x, k=6, rerank="none")
        near = client.search(vectors=x, radius=6)
        tied = client.search(vectors=x, k=6, ties="complete")
        of_codes = client.search(codes=codes, k=6)
    assert np.array_equal(bits.ids, collection.search(codes, 6).ids)
    expected = collection.search_real(folder.hasher.project_queries(x), 6)
    assert np.array_equal(weights.ids, expected[1])
    assert np.array_equal(weights.distances, -expected[0])
    assert np.array_equal(near.ids, collection.within(codes, 6).ids)
    assert np.array_equal(tied.ids, collection.search(codes, 6, "complete").ids)
    assert np.array_equal(of_codes.ids, bits.ids)


def test_every_combination_of_fields_is_that_of_the_library(folder, client, collection):
    x = folder.data.query_x[:3]
    queries = folder.hasher.as_queries(x)
    vectors = index.vectors(folder.data.database_x, similarity="ip")
    for by in ("bits", "weights"):
        expected = collection.search(queries, 5, by=by, rerank=vectors, pool=30)
        answer = client.search(vectors=x, k=5, by=by, rerank="vectors", similarity="ip", pool=30)
        assert np.array_equal(answer.ids, expected.ids)
        assert np.array_equal(answer.distances, expected.distances)


@pytest.mark.parametrize(("old", "new"), [("query", "by"), ("rescore", "rerank")])
def test_a_field_that_was_renamed_is_told_by_its_new_name(planned, old, new):
    answer = httpx.post(f"{planned}/search", json={"ids": [1], old: "real"})
    assert_problem(answer, 422, f"it is called {new}")


def test_stats_tell_the_plan(planned):
    with Client(planned) as client:
        plan = client.stats()["plan"]
    assert (plan["by"], plan["rerank"], plan["pool"]) == ("weights", "vectors", 40)
    assert plan["sentence"] == PLAN.sentence


@pytest.mark.slow
def test_a_compressed_folder_is_served_by_its_plan(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((900, 24)).astype(np.float32)
    compressed = compress.compress(x[60:], x[:60], out=tmp_path / "out", n_bytes=(2,), keep=0.9)
    expected = compressed.search(x[:5], 4)
    assert compressed.plan.rerank == "vectors"
    with running(create_app(tmp_path / "out")) as url, Client(url) as client:
        answer = client.search(vectors=x[:5], k=4)
    assert np.array_equal(answer.ids, expected.ids)
    assert np.array_equal(answer.distances, expected.distances)
