"""What every method must do alike with queries, whether these have a map of their own or not."""

import importlib.util
import itertools
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone

import rankbits
from commands import Command, assert_one_line
from rankbits import BinaryCodes, affinity, methods
from rankbits.errors import InputError
from rankbits.methods import registry

N_FEATURES, N_CLASSES, N_BITS = 12, 3, 11
HAS_TORCH = importlib.util.find_spec("torch") is not None
GRADIENT = [name for name in methods.names() if registry.METHODS[name].needs_torch]
TWO_MAPS = ("distilled", "additive")  # always
COMPARING = [name for name in GRADIENT if name not in ("csq", "orthohash", "dpn", "greedyhash")]
KINDS = [
    *((name, "same") for name in methods.names()),
    *itertools.product(GRADIENT, ("own", "real")),
]


def create(name, queries="same", **params):
    if registry.METHODS[name].needs_torch:
        if not HAS_TORCH:
            pytest.skip(f"{name} needs torch")
        params = {"epochs": 2, "n_threads": 1, "queries": queries, **params}
    hasher = methods.get(name, n_bits=N_BITS, **params)
    return hasher.set_params(random_state=0) if "random_state" in hasher.get_params() else hasher


@cache
def rows_and_labels():
    rng = np.random.default_rng(7)
    labels = rng.integers(0, N_CLASSES, 90)
    centers = 2.0 * rng.standard_normal((N_CLASSES, N_FEATURES))
    return centers[labels] + rng.standard_normal((90, N_FEATURES)), labels


@cache
def fit_once(name, queries):
    return create(name, queries).fit(*rows_and_labels())


@pytest.fixture
def rows():
    return rows_and_labels()[0]


@pytest.fixture(params=KINDS, ids="-".join)
def kind(request):
    return request.param


@pytest.fixture
def fitted(kind):
    return fit_once(*kind)


def has_two_maps(kind):
    return kind[1] != "same" or kind[0] in TWO_MAPS


def has_query_bits(fitted):
    return "bits" in fitted.query_kinds


def skip_without_query_bits(fitted):
    if not has_query_bits(fitted):
        pytest.skip("its queries have no bits")


def test_queries_without_bits_have_sixteen_numbers_for_every_four_and_say_so(fitted, rows):
    if has_query_bits(fitted):
        pytest.skip("its queries have bits")
    weights = fitted.project_queries(rows)
    assert (weights.shape, weights.dtype.kind) == ((90, 16 * 3), "f")
    assert np.isfinite(weights).all()
    assert fitted.encode(rows).side == "items"
    with pytest.raises(InputError, match=r"have no bits.*index\.search\(hasher\.as_queries\(X\)"):
        fitted.encode_queries(rows)


def test_real_valued_queries_search_and_are_evaluated_whatever_the_kind(fitted, rows):
    items, weights = fitted.encode(rows), fitted.project_queries(rows)
    index = rankbits.index.HammingIndex(N_BITS)
    index.add(items)
    scores, ids = index.search_real(weights, 90)
    relation = affinity.classes(*[rows_and_labels()[1]] * 2)
    exact = rankbits.evaluate(None, items, relation, "AP", query_weights=weights).mean["AP"]
    ranked = rankbits.evaluate_rankings(ids, relation, "AP", scores=scores).mean["AP"]
    assert exact == pytest.approx(ranked, abs=1e-12)
    assert exact > 1 / N_CLASSES + 0.05


def test_weights_are_finite_floats_and_their_signs_are_the_bits_of_queries(fitted, rows):
    skip_without_query_bits(fitted)
    weights, codes = fitted.project_queries(rows), fitted.encode_queries(rows)
    assert (weights.shape, weights.dtype.kind) == ((90, N_BITS), "f")
    assert np.isfinite(weights).all()
    assert codes == BinaryCodes.from_bits(weights > 0)
    assert codes.model == fitted.encode(rows).model is not None


def test_queries_are_encoded_as_items_unless_they_have_a_map_of_their_own(kind, fitted, rows):
    skip_without_query_bits(fitted)
    weights, codes = fitted.project_queries(rows), fitted.encode_queries(rows)
    if has_two_maps(kind):
        assert (codes.side, fitted.encode(rows).side) == ("queries", "items")
        assert np.abs(weights).max() <= 1 or kind[0] in TWO_MAPS
        assert not np.array_equal(weights, np.tanh(fitted.project(rows)))
    else:
        assert np.array_equal(weights, fitted.project(rows))
        assert codes == fitted.encode(rows)
        assert codes.side is fitted.encode(rows).side is None


def test_items_are_what_transform_packs(fitted, rows):
    assert np.array_equal(fitted.transform(rows), fitted.encode(rows).packed)


def test_sides_are_kept_apart_where_there_are_two(kind, fitted, rows):
    skip_without_query_bits(fitted)
    items, queries = fitted.encode(rows), fitted.encode_queries(rows)
    relation = affinity.classes(*[rows_and_labels()[1]] * 2)
    assert rankbits.evaluate(queries, items, relation).mean["AP"] > 0
    swapped = [lambda: rankbits.evaluate(items, queries, relation)]
    index = rankbits.index.HammingIndex(N_BITS)
    index.add(items)
    index.search(queries, 3)
    swapped += [lambda: index.search(items, 3), lambda: index.add(queries)]
    for use in swapped:
        if has_two_maps(kind):
            with pytest.raises(InputError, match="must be encoded as"):
                use()
        else:
            use()


def test_a_saved_method_comes_back_with_both_maps(fitted, rows, tmp_path):
    fitted.save(tmp_path / "model")
    again = rankbits.load(tmp_path / "model")
    assert again.get_params() == fitted.get_params()
    assert np.array_equal(again.project(rows), fitted.project(rows))
    assert np.array_equal(again.project_queries(rows), fitted.project_queries(rows))
    assert methods.fingerprint(again) == methods.fingerprint(fitted)
    assert again.encode(rows).side == fitted.encode(rows).side


def test_a_clone_keeps_the_kind_and_learns_the_same_again(kind, fitted, rows):
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    again = copy.fit(*rows_and_labels())
    assert np.array_equal(again.project_queries(rows), fitted.project_queries(rows))


def test_an_onnx_file_gives_the_codes_of_both_sides(kind, fitted, rows, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    if kind[0] in GRADIENT and kind[0] != "talr-ap":
        pytest.skip("the encoders of all methods trained by gradients are of the same parts")
    assert methods.export_onnx(fitted, tmp_path / "model.onnx") > 0
    session = runtime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    names = ["logits", "codes", "query_logits", "query_codes"]
    if not has_query_bits(fitted):
        names.remove("query_codes")
    assert [output.name for output in session.get_outputs()] == names
    outputs = dict(zip(names, session.run(names, {"x": rows.astype(np.float32)}), strict=True))
    for prefix, logits in (("", fitted.project(rows)), ("query_", fitted.project_queries(rows))):
        size = np.abs(logits).max()
        np.testing.assert_allclose(outputs[f"{prefix}logits"], logits, atol=1e-4 * size)
        if f"{prefix}codes" not in outputs:
            continue
        bits = np.unpackbits(outputs[f"{prefix}codes"], axis=1, count=N_BITS)
        is_clear = np.abs(logits) > 1e-4 * size
        assert np.array_equal(bits[is_clear], (logits > 0)[is_clear])


def test_rows_that_cannot_be_encoded_are_refused_as_queries_too(fitted, rows):
    broken = rows.copy()
    broken[4, 2] = np.nan
    for encode in (fitted.encode_queries, fitted.project_queries):
        if encode == fitted.encode_queries and not has_query_bits(fitted):
            continue
        with pytest.raises(InputError, match="X must be finite, got NaN in row 4"):
            encode(broken)
        with pytest.raises(InputError, match=f"{N_FEATURES} features"):
            encode(rows[:, 1:])


@pytest.fixture
def log(rows):
    """Twelve queries, each with three items of its class that were judged."""
    labels = rows_and_labels()[1]
    triples = [
        (query, item, 1)
        for query in range(12)
        for item in np.flatnonzero(labels[12:] == labels[query])[:3]
    ]
    return rows[12:], rows[:12], affinity.judgements(triples, 12, 78)


@pytest.mark.parametrize("name", COMPARING)
@pytest.mark.parametrize("queries", ["same", "own", "real"])
def test_queries_may_be_rows_of_their_own(name, queries, log):
    items, query_rows, judgements = log
    hasher = create(name, queries).fit(items, query_X=query_rows, judgements=judgements)
    again = create(name, queries).fit(items, query_X=query_rows, judgements=judgements)
    weights = hasher.project_queries(query_rows)
    assert weights.shape == (12, N_BITS)
    assert np.array_equal(weights, again.project_queries(query_rows))
    assert hasher.report_["supervision"]["queries"] == 12


@pytest.mark.parametrize("name", COMPARING)
def test_queries_that_nobody_judged_learn_from_their_own_rankings(name, log):
    items, query_rows, _ = log
    ranks, levels = ([10], [1])
    if name == "talr-ndcg":
        ranks, levels = [10, 39], [10, 5]  # 50 and more are cut to half of 78 items
    nearest = affinity.nearest_ranks(query_rows, items, ranks, levels, metric="l2")
    given = create(name).fit(items, query_X=query_rows, judgements=nearest)
    hasher = create(name).fit(items, query_X=query_rows)
    assert np.array_equal(hasher.project(items), given.project(items))
    assert hasher.report_["supervision"] == {
        "y": "ranks",
        "levels": [0, *levels[::-1]],
        "queries": 12,
    }


@pytest.mark.parametrize("name", GRADIENT)
@pytest.mark.parametrize("queries", ["own", "real"])
def test_two_maps_learn_of_tags_from_a_memory_and_score_rows_held_out(name, queries, rows):
    tags = np.eye(N_CLASSES, dtype=int)[rows_and_labels()[1]]
    tags[::5, 0] = 1
    settings = {"gallery": "memory", "batch_size": 32, "validation_fraction": 0.2}
    hasher = create(name, queries, **settings).fit(rows, tags)
    start = create(name, queries, learning_rate=1e-12, **settings).fit(rows, tags)
    assert 0 < hasher.report_["best"]["score"] <= 1
    for project in ("project", "project_queries"):
        moved = np.abs(getattr(hasher, project)(rows) - getattr(start, project)(rows))
        assert moved.max() > 1e-3


@pytest.mark.parametrize("name", [name for name in GRADIENT if name not in COMPARING])
def test_methods_that_need_classes_say_so_of_a_log(name, log):
    items, query_rows, judgements = log
    with pytest.raises(InputError, match=r"y must be class labels .*, got sparse judgements"):
        create(name).fit(items, query_X=query_rows, judgements=judgements)


@pytest.mark.parametrize("name", COMPARING)
def test_a_log_that_does_not_fit_is_refused_before_any_work(name, log):
    items, query_rows, judgements = log
    hasher = create(name)
    broken = query_rows.copy()
    broken[3, 1] = np.nan
    nothing = affinity.judgements(np.empty((0, 3), int), 12, 78)
    for arguments, sentence in (
        ({"judgements": judgements}, r"query_X must be given.*judgements over \(X, X\) are y"),
        ({"query_X": query_rows[:, 1:], "judgements": judgements}, "query_X: X has 11 features"),
        ({"query_X": broken, "judgements": judgements}, "query_X: X must be finite, got NaN"),
        ({"query_X": query_rows[1:], "judgements": judgements}, r"shape \(11, 78\), got.*\(12, 78"),
        ({"query_X": query_rows, "judgements": [(0, 0, 1)]}, r"rankbits\.affinity over \(query_X"),
        ({"query_X": query_rows, "judgements": nothing}, "make some items relevant to queries"),
    ):
        with pytest.raises(InputError, match=sentence):
            hasher.fit(items, **arguments)
    with pytest.raises(InputError, match="y must be None with query_X"):
        hasher.fit(items, rows_and_labels()[1][12:], query_X=query_rows, judgements=judgements)
    with pytest.raises(InputError, match=r"rows must name an item from 0 to 77, got 78"):
        affinity.judgements([(0, 78, 1)], 12, 78)


@pytest.mark.parametrize("name", GRADIENT)
def test_an_unknown_kind_of_queries_is_refused(name):
    with pytest.raises(InputError, match="queries must be one of same, own, real; got 'both'"):
        create(name, "both").fit(*rows_and_labels())


def test_the_command_line_fits_and_encodes_both_sides(tmp_path, monkeypatch):
    if not HAS_TORCH:
        pytest.skip("talr-ap needs torch")
    monkeypatch.chdir(tmp_path)
    rows, labels = rows_and_labels()
    np.save("x.npy", rows)
    np.save("y.npy", labels)
    options = ["--method", "talr-ap", "--bits", N_BITS, "--param", "queries=own"]
    Command("fit").printed(
        "x.npy", "--labels", "y.npy", *options, "--param", "epochs=2", "--out", "model"
    )
    hasher = rankbits.load("model")
    for side, encode in (("items", hasher.encode), ("queries", hasher.encode_queries)):
        printed = Command("encode").printed("model", "x.npy", "--as", side, "--out", f"{side}.npy")
        assert printed["as"] == side
        codes = BinaryCodes.load(f"{side}.npy")
        assert (codes, codes.side) == (encode(rows), side)
    Command("index").printed("build", "items.npy", "--out", "live")
    Command("index").printed("search", "live", "queries.npy", "-k", 2)
    refused = Command("index")("search", "live", "items.npy", "-k", 2)
    assert refused.exit_code == 1
    assert "rankbits encode --as queries" in refused.stderr


def test_the_command_line_fits_on_queries_that_are_rows_of_their_own(log, tmp_path, monkeypatch):
    if not HAS_TORCH:
        pytest.skip("talr-ap needs torch")
    monkeypatch.chdir(tmp_path)
    items, query_rows, judgements = log
    np.save("x.npy", items)
    np.save("q.npy", query_rows)
    np.save("j.npy", judgements.rows)
    files = ["x.npy", "--judgements", "j.npy", "--queries", "q.npy", "--bits", N_BITS]
    options = ["--param", "epochs=2", "--param", "queries=own", "--param", "n_threads=1"]
    Command("fit").printed(*files, *options, "--method", "talr-ap", "--out", "model")
    expected = create("talr-ap", "own").fit(items, query_X=query_rows, judgements=judgements)
    weights = rankbits.load("model").project_queries(query_rows)
    assert np.array_equal(weights, expected.project_queries(query_rows))
    assert_one_line(
        Command("fit")(*files, "--method", "itq", "--out", "other"), "ITQ learns from X"
    )
    alone = [
        "x.npy",
        "--queries",
        "q.npy",
        "--bits",
        N_BITS,
        "--method",
        "talr-ap",
        "--out",
        "other",
    ]
    Command("fit").printed(*alone, *options)
    expected = create("talr-ap", "own").fit(items, query_X=query_rows)
    weights = rankbits.load("other").project_queries(query_rows)
    assert np.array_equal(weights, expected.project_queries(query_rows))
    assert Command("fit")(*alone, "--labels", "j.npy").exit_code == 2


@pytest.mark.parametrize("queries", ["own", "real"])
def test_a_training_of_two_maps_that_is_stopped_goes_on_bit_for_bit(queries, rows, tmp_path):
    torch = pytest.importorskip("torch")
    x, n_scores = torch.from_numpy(rows.astype(np.float32)), []

    def score(items, query_encoder):
        n_scores.append(1)
        if len(n_scores) == 3:
            raise KeyboardInterrupt
        return (items(x) * query_encoder(x)).mean().item()

    settings = {"epochs": 6, "scoring": score, "checkpoint_epochs": 1, "batch_size": 32}
    hasher = create("talr-ap", queries, checkpoint=tmp_path / "state", **settings)
    with pytest.raises(KeyboardInterrupt):
        hasher.fit(*rows_and_labels())
    resumed = hasher.fit(*rows_and_labels())
    assert resumed.report_["epochs_resumed"] == 2
    whole = create("talr-ap", queries, **settings).fit(*rows_and_labels())
    for project in ("project", "project_queries"):
        assert np.array_equal(getattr(resumed, project)(rows), getattr(whole, project)(rows))
