"""Anchor graphs: the small eigenproblem has the eigenvectors of the graph of all rows."""

import numpy as np
import pytest

from oracles.anchor_graph import similarities, weights_of
from rankbits.methods.shallow.shared.anchor_graph import (
    AnchorGraph,
    nearest_anchors,
    smoothest_vectors,
    weight_matrix,
)
from rankbits.methods.shallow.shared.groups import draw_rows, find_centers


@pytest.fixture
def rows(rng):
    return rng.standard_normal((90, 3))


@pytest.fixture
def graph(rows):
    return AnchorGraph(rows[:12] + 0.01, 0.7, 3)


def test_weights_are_those_of_the_definition(graph, rows):
    table = weight_matrix(*graph.weigh(rows), 12).toarray()
    np.testing.assert_allclose(table, weights_of(rows, graph.anchors, 0.7, 3), atol=1e-12)


def test_of_equal_distances_the_first_anchor_is_nearest():
    nearest, squares = nearest_anchors(np.zeros((2, 1)), np.array([[2.0], [1.0], [-1.0]]), 2)
    assert nearest.tolist() == [[1, 2], [1, 2]]
    assert squares.tolist() == [[1, 1], [1, 1]]


def test_vectors_are_eigenvectors_of_the_graph_of_all_rows(graph, rows):
    table = weight_matrix(*graph.weigh(rows), 12)
    planes, values = smoothest_vectors(table, 6)
    vectors = graph.extend(rows, planes)
    whole = similarities(weights_of(rows, graph.anchors, 0.7, 3))
    np.testing.assert_allclose(whole @ vectors, vectors * values, atol=1e-9)
    np.testing.assert_allclose(vectors.T @ vectors, 90 * np.eye(6), atol=1e-8)
    np.testing.assert_allclose(vectors.sum(axis=0), 0, atol=1e-9)
    expected = np.linalg.eigvalsh(whole)[::-1]
    assert expected[0] == pytest.approx(1)
    np.testing.assert_allclose(values, expected[1:7], atol=1e-9)


def test_a_new_row_has_the_extension_of_the_eigenvectors(graph, rows, rng):
    planes, values = smoothest_vectors(weight_matrix(*graph.weigh(rows), 12), 6)
    new = rng.standard_normal((20, 3))
    table, new_table = (weights_of(x, graph.anchors, 0.7, 3) for x in (rows, new))
    extended = similarities(table, new_table) @ graph.extend(rows, planes) / values
    np.testing.assert_allclose(graph.extend(new, planes), extended, atol=1e-9)


def test_parts_without_an_edge_between_them_are_told_apart_without_the_constant(rng):
    parts = [rng.standard_normal((40, 2)) + shift for shift in (0, 100, 200)]
    rows = np.concatenate(parts)
    anchors = np.concatenate([part[:4] for part in parts])
    graph = AnchorGraph(anchors, 1.0, 2)
    planes, values = smoothest_vectors(weight_matrix(*graph.weigh(rows), 12), 2)
    vectors = graph.extend(rows, planes)
    np.testing.assert_allclose(values, 1, atol=1e-9)
    np.testing.assert_allclose(vectors.sum(axis=0), 0, atol=1e-8)
    for k in range(3):
        np.testing.assert_allclose(vectors[40 * k : 40 * k + 40].std(axis=0), 0, atol=1e-8)


def test_no_more_vectors_are_given_than_the_graph_has(graph, rows):
    table = weight_matrix(*graph.weigh(rows), 12)
    assert smoothest_vectors(table, 50)[0].shape == (12, 11)
    alone = AnchorGraph(graph.anchors, 0.7, 1)  # every eigenvalue is 1
    assert smoothest_vectors(weight_matrix(*alone.weigh(rows), 12), 9)[0].shape == (12, 9)


def test_centers_are_means_of_their_groups_or_all_distinct_rows(rng):
    corners = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]])
    rows = np.repeat(corners, 30, axis=0) + rng.uniform(-1, 1, (90, 2))
    centers = find_centers(rows, 3, 20, np.random.RandomState(0))
    order = np.argsort(centers @ [1.0, 2.0])
    np.testing.assert_allclose(centers[order], rows.reshape(3, 30, 2).mean(axis=1), atol=1e-9)
    repeated = np.repeat(corners, 5, axis=0)
    assert np.array_equal(
        find_centers(repeated, 4, 3, np.random.RandomState(0)), np.unique(corners, axis=0)
    )


def test_rows_are_drawn_without_repeats_in_their_order():
    rows = np.arange(50)[:, None]
    assert draw_rows(rows, 50, np.random.RandomState(0)) is rows
    drawn = draw_rows(rows, 20, np.random.RandomState(0))[:, 0]
    assert len(set(drawn)) == 20
    assert (np.diff(drawn) > 0).all()
