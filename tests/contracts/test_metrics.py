"""What every metric that can be evaluated by name must do alike.

A metric that is registered from outside, in one file of a few lines, goes through all of it too.
"""

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.ordinary_metrics import ORDINARY, items_of, orders
from oracles.plain_metric import METRIC as PLAIN_METRIC
from rankbits import BinaryCodes, TieHistogram, affinity, count_ties, evaluate, evaluate_histogram
from rankbits.errors import InputError
from rankbits.evaluation import EMPTY
from rankbits.metrics import _names, parse_metric, parse_metrics, register, registered

N_BITS = 3
CUTOFFS = {"none": [""], "rank": ["@1", "@3", "@40"], "radius": ["@r0", "@r1", "@r3"]}
METRICS = {
    metric.name: metric
    for metric in (*registered(), PLAIN_METRIC)
    if not metric.reads_reference  # those are tested with the evaluations that take a reference
}


@pytest.fixture(autouse=True)
def plain_metric(monkeypatch):
    """Register the metric from outside for one test."""
    monkeypatch.setattr(_names, "_METRICS", dict(_names._METRICS))
    register(PLAIN_METRIC)


def options_of(metric):
    """Every choice of words in parentheses: for each option none, or one of its words."""
    for words in product(*(("", *option.choices) for option in metric.options)):
        chosen = ",".join(word for word in words if word)
        yield f"({chosen})" if chosen else ""


def names_of(metric):
    cutoffs = [text for kind in metric.cutoffs for text in CUTOFFS[kind]]
    return [f"{metric.name}{words}{cut}" for words in options_of(metric) for cut in cutoffs]


def with_bound(name, bound):
    head, at, cut = name.partition("@")
    return f"{head}.{bound}{at}{cut}"


NAMES = [name for metric in METRICS.values() for name in names_of(metric)]
BOUNDED = [name for metric in METRICS.values() if metric.bounds for name in names_of(metric)]


def evaluated(codes, levels, names):
    """Values for the one query whose bits are all 0, by name."""
    query, database = BinaryCodes.from_bits(np.zeros((1, len(codes[0])), int)), np.array(codes)
    result = evaluate(
        query, BinaryCodes.from_bits(database), affinity.levels(np.array([levels])), names
    )
    return {name: values[0] for name, values in result.per_query.items()}


def over_orders(name, codes, levels):
    """The ordinary metric in every order of tied items."""
    request = parse_metric(name)
    cut = {"k": request.k, "radius": request.radius}
    cut = {key: value for key, value in cut.items() if value is not None}
    metric = ORDINARY[request.metric.name]
    return [metric(order, **cut, **request.options) for order in orders(items_of(codes, levels))]


def random_case(seed):
    """Six items of three bits with levels 0..2, at least one of them relevant."""
    rng = np.random.default_rng(seed)
    codes = [tuple(code) for code in rng.integers(0, 2, (6, N_BITS)).tolist()]
    return codes, [int(rng.integers(1, 3)), *rng.integers(0, 3, 5).tolist()]


CODES = st.tuples(*[st.integers(0, 1)] * N_BITS)
CASES = st.lists(st.tuples(CODES, st.integers(0, 2)), min_size=1, max_size=6).filter(
    lambda items: any(level for _, level in items)
)


def test_every_metric_has_an_oracle():
    assert set(METRICS) <= set(ORDINARY)


@pytest.mark.parametrize("name", NAMES)
def test_the_value_is_the_mean_of_the_ordinary_metric_over_all_tie_orders(name):
    for seed in range(3):
        codes, levels = random_case(seed)
        expected = np.mean(over_orders(name, codes, levels))
        assert evaluated(codes, levels, [name])[name] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
@given(CASES, st.data())
def test_the_value_is_that_mean_for_any_few_items(metric, items, data):
    codes, levels = zip(*items, strict=True)
    name = data.draw(st.sampled_from(names_of(METRICS[metric])))
    expected = np.mean(over_orders(name, codes, levels))
    assert evaluated(codes, levels, [name])[name] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", BOUNDED)
def test_bounds_are_the_extremes_over_all_tie_orders_and_hold_the_value_between_them(name):
    worst, best = with_bound(name, "worst"), with_bound(name, "best")
    for seed in range(3):
        codes, levels = random_case(seed)
        values = evaluated(codes, levels, [name, worst, best])
        ordinary = over_orders(name, codes, levels)
        assert values[worst] == pytest.approx(min(ordinary), abs=1e-12)
        assert values[best] == pytest.approx(max(ordinary), abs=1e-12)
        assert values[worst] - 1e-12 <= values[name] <= values[best] + 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_without_ties_the_value_and_its_bounds_are_the_ordinary_metric(name):
    codes = [tuple(row) for row in np.tri(4, N_BITS, -1, dtype=int).tolist()]  # distances 0..3
    for levels in ([0, 2, 0, 1], [1, 1, 0, 0], [0, 0, 0, 2]):
        (expected,) = over_orders(name, codes, levels)
        bounds = [with_bound(name, bound) for bound in ("worst", "best") if name in BOUNDED]
        for value in evaluated(codes, levels, [name, *bounds]).values():
            assert value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_shards_of_a_database_give_the_value_of_the_whole(name, rng):
    request = parse_metric(name)
    codes = BinaryCodes.from_bits(rng.integers(0, 2, (30, N_BITS)))
    queries, levels = codes[:4], rng.integers(0, 3, (4, 30))
    if request.needs_codes:
        with pytest.raises(InputError, match="needs the codes themselves"):
            evaluate_histogram(count_ties(queries, codes, affinity.levels(levels)), [name])
        return
    cuts = slice(0, 11), slice(11, 30)
    shards = [count_ties(queries, codes[cut], affinity.levels(levels[:, cut])) for cut in cuts]
    merged = evaluate_histogram(shards[0] + shards[1], [name])
    expected = evaluate(queries, codes, affinity.levels(levels), [name])
    np.testing.assert_array_equal(merged.per_query[name], expected.per_query[name])


@pytest.mark.parametrize("name", NAMES)
def test_queries_do_not_mix_and_no_queries_give_no_values(name, rng):
    codes = BinaryCodes.from_bits(rng.integers(0, 2, (20, N_BITS)))
    levels = rng.integers(0, 2, (5, 20))
    together = evaluate(codes[:5], codes, affinity.levels(levels), [name]).per_query[name]
    for query in range(5):
        rows = slice(query, query + 1)
        alone = evaluate(codes[rows], codes, affinity.levels(levels[rows]), [name])
        np.testing.assert_allclose(alone.per_query[name], together[rows], rtol=1e-13)
    nobody = TieHistogram(np.zeros((0, N_BITS + 1, 2), int), np.array([0, 1]))
    values = parse_metric(name).values(nobody, np.zeros((0, N_BITS + 1), int))
    assert (values.shape, values.dtype) == ((0,), np.float64)


@pytest.mark.parametrize("name", NAMES)
def test_a_query_with_nothing_relevant_has_the_value_that_the_metric_declares(name):
    metric = parse_metric(name).metric
    codes, _ = random_case(0)
    bounds = [with_bound(name, bound) for bound in ("worst", "best") if metric.bounds]
    for value in evaluated(codes, [0] * len(codes), [name, *bounds]).values():
        assert value == pytest.approx(metric.value_if_empty, nan_ok=True, abs=0)
    assert metric.value_if_empty == 0 or np.isnan(metric.value_if_empty)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_a_name_is_parsed_into_the_parts_that_make_it_up(metric):
    bounds = ("", ".worst", ".best") if metric.bounds else ("",)
    cutoffs = {text: kind for kind in metric.cutoffs for text in CUTOFFS[kind]}
    for words, bound, (cut, kind) in product(options_of(metric), bounds, cutoffs.items()):
        name = f"{metric.name}{words}{bound}{cut}"
        request = parse_metric(name)
        assert (request.name, request.metric) == (name, metric)
        assert (request.bound or "") == bound.removeprefix(".")
        number = request.k if kind == "rank" else request.radius
        assert (request.cutoff, number) == (kind, int(cut.strip("@r")) if cut else None)
        choices = {option.keyword: request.options[option.keyword] for option in metric.options}
        assert set(filter(None, words.strip("()").split(","))) <= set(choices.values())
        spelled = ",".join(choices.values())  # with every choice written out it is the same request
        full = f"{metric.name}{f'({spelled})' if spelled else ''}{bound}{cut}"
        assert parse_metric(full).options == request.options


@pytest.mark.parametrize("name", [*NAMES, *(with_bound(name, "best") for name in BOUNDED)])
@pytest.mark.parametrize("empty", EMPTY)
def test_conventions_are_said_in_words(name, empty):
    request = parse_metric(name)
    words = request.conventions(empty)
    assert json.loads(json.dumps(words)) == words
    assert all(isinstance(text, str) and text.strip() for text in words.values())
    options = {option.keyword for option in request.metric.options}
    assert {"cutoff", "empty_query", *options} <= set(words)
    assert ("ties" in words) == (request.radius is None)
    for number in (request.k, request.radius):
        assert number is None or str(number) in words["cutoff"]
    assert ("scores 0" in words["empty_query"]) == (
        empty == "zero" or (empty == "skip" and request.metric.value_if_empty == 0)
    )


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_bad_ranks_and_radii_are_refused_by_the_function_and_by_name(metric):
    h = TieHistogram(np.array([[[1, 1], [0, 2], [1, 0], [0, 0]]]), np.array([0, 1]))
    positional = (h, np.ones((1, 4), int)) if metric.count_codes else (h,)
    bad = {"rank": ("k", [0, -1, 2.5, True, "3"]), "radius": ("radius", [-1, 4, 1.5, True, "2"])}
    for kind in set(metric.cutoffs) - {"none"}:
        keyword, values = bad[kind]
        for value in values:
            with pytest.raises(InputError, match=rf"^{keyword} must be an integer"):
                metric.function(*positional, **{keyword: value})
    for cut in ("@0", "@-1", "@1.5", "@r-1", "@r4", "@r1.5", "@", "@r", "@k"):
        with pytest.raises(InputError, match=rf"{metric.name}{cut}'"):
            parse_metrics([f"{metric.name}{cut}"], N_BITS)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_a_cutoff_that_the_metric_does_not_take_is_refused(metric):
    for kind in set(CUTOFFS) - set(metric.cutoffs):
        with pytest.raises(InputError, match=rf"; {metric.name} takes "):
            parse_metric(f"{metric.name}{CUTOFFS[kind][-1]}")


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_other_spellings_are_refused_with_the_name_that_is_meant(metric):
    kind = metric.cutoffs[-1]
    cut = CUTOFFS[kind][-1]
    for alias in (*metric.aliases, *(alias.upper() for alias in metric.aliases)):
        with pytest.raises(InputError, match=rf"; did you mean {metric.name}{cut}\?$"):
            parse_metric(f"{alias}{cut}")


def test_no_two_metrics_share_a_name_or_another_spelling():
    spellings = [word for m in METRICS.values() for word in {m.name.lower(), *m.aliases}]
    assert len(spellings) == len(set(spellings))


def test_a_metric_in_one_file_is_evaluated_by_name_and_listed_in_errors():
    codes, levels = [(0, 0, 0), (0, 0, 1), (0, 0, 1)], [1, 2, 0]
    assert evaluated(codes, levels, ["CG@1", "CG@2"]) == {"CG@1": 1.0, "CG@2": 2.0}
    with pytest.raises(InputError, match=r"known: AP, .*, LGAP, CG, cut by rank"):
        parse_metric("accuracy")
