"""Metric names: what each part asks for, and what is said of a name that asks for nothing."""

import pytest

from rankbits.errors import InputError
from rankbits.metrics import Metric, parse_metric, parse_metrics, precision, register, registered

NAMES = {  # name: metric, options, bound, k, radius
    "AP": ("AP", {"normalise": "retrieved"}, None, None, None),
    "AP@1000": ("AP", {"normalise": "retrieved"}, None, 1000, None),
    "AP(min)@1000": ("AP", {"normalise": "min"}, None, 1000, None),
    "AP(total)@1000": ("AP", {"normalise": "total"}, None, 1000, None),
    "AP.best": ("AP", {"normalise": "retrieved"}, "best", None, None),
    "AP.worst": ("AP", {"normalise": "retrieved"}, "worst", None, None),
    "AP(min).best@10": ("AP", {"normalise": "min"}, "best", 10, None),
    "nDCG": ("nDCG", {"gain": "exp", "discount": "log2"}, None, None, None),
    "nDCG@100": ("nDCG", {"gain": "exp", "discount": "log2"}, None, 100, None),
    "nDCG(linear)@100": ("nDCG", {"gain": "linear", "discount": "log2"}, None, 100, None),
    "nDCG(rsh)": ("nDCG", {"gain": "linear", "discount": "rsh"}, None, None, None),
    "nDCG(exp,rsh)": ("nDCG", {"gain": "exp", "discount": "rsh"}, None, None, None),
    "nDCG(rsh,exp)": ("nDCG", {"gain": "exp", "discount": "rsh"}, None, None, None),
    "nDCG(linear,rsh)@5": ("nDCG", {"gain": "linear", "discount": "rsh"}, None, 5, None),
    "nDCG.best": ("nDCG", {"gain": "exp", "discount": "log2"}, "best", None, None),
    "nDCG(linear).worst@7": ("nDCG", {"gain": "linear", "discount": "log2"}, "worst", 7, None),
    "P@100": ("P", {}, None, 100, None),
    "R@100": ("R", {}, None, 100, None),
    "F1@100": ("F1", {}, None, 100, None),
    "Hit@10": ("Hit", {}, None, 10, None),
    "RR": ("RR", {}, None, None, None),
    "RR@10": ("RR", {}, None, 10, None),
    "P@r2": ("P", {}, None, None, 2),
    "R@r0": ("R", {}, None, None, 0),
    "F1@r2": ("F1", {}, None, None, 2),
    "ACG@r3": ("ACG", {}, None, None, 3),
    "LGAP@r2": ("LGAP", {}, None, None, 2),
}


@pytest.mark.parametrize("name", NAMES)
def test_each_part_of_a_name_is_what_it_asks_for(name):
    request = parse_metric(name)
    parts = request.metric.name, request.options, request.bound, request.k, request.radius
    assert (request.name, *parts) == (name, *NAMES[name])


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("mAP", "AP"),
        ("MAP@1000", "AP@1000"),
        ("mAP@R", "AP"),
        ("mAP@all", "AP"),
        ("ap", "AP"),
        ("ndcg", "nDCG"),
        ("NDCG@100", "nDCG@100"),
        ("precision@10", "P@10"),
        ("Precision@r=2", "P@r2"),
        ("recall", "R@100"),
        ("f1@r2", "F1@r2"),
        ("hit_rate@5", "Hit@5"),
        ("hitrate@r5", "Hit@5"),
        ("MRR", "RR"),
        ("MRR@10", "RR@10"),
        ("mLGAP@3", "LGAP@r3"),
        ("AP @5", "AP@5"),
        ("map@r2", "AP@2"),
    ],
)
def test_an_unknown_name_suggests_what_may_be_meant(name, meant):
    with pytest.raises(InputError) as caught:
        parse_metric(name)
    assert str(caught.value).startswith(f"unknown metric {name!r}; known: AP, nDCG, P, R, ")
    assert str(caught.value).endswith(f"; did you mean {meant}?")
    parse_metric(meant)


@pytest.mark.parametrize("name", ["", "accuracy", "AP@", "AP@-1", "AP@1e3", "@5", 7, None, "AP\n"])
def test_a_name_that_is_nothing_known_is_refused(name):
    with pytest.raises(InputError, match="unknown metric"):
        parse_metric(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("P", r"needs a cutoff; P takes a rank \(@100\) or a radius \(@r2\)"),
        ("Hit@r2", r"cannot have a radius \(@r2\); Hit takes a rank"),
        ("RR@r5", r"RR takes no cutoff or a rank \(@100\)"),
        ("ACG@5", r"cannot have a rank \(@100\); ACG takes a radius"),
        ("AP@r2", "AP takes no cutoff or a rank"),
        ("P.best@10", "has no bounds; .best and .worst exist for AP, nDCG"),
        ("AP@0", "the cutoff of metric 'AP@0' must be an integer >= 1, got 0"),
        ("AP(linear)", r"options 'linear' .*; AP takes one of retrieved, min, total$"),
        ("AP(min,total)@5", "options 'min,total'"),
        ("nDCG(exp,linear)", "one of exp, linear and one of log2, rsh"),
        ("nDCG(exp,exp)", "options 'exp,exp'"),
        ("P(min)@5", "options 'min' in parentheses; P takes none"),
    ],
)
def test_a_known_metric_with_a_wrong_part_says_which(name, reason):
    with pytest.raises(InputError, match=reason):
        parse_metric(name)


def test_a_list_keeps_its_order_and_drops_repeats_and_one_name_is_a_list():
    assert [request.name for request in parse_metrics(["RR", "AP", "RR"])] == ["RR", "AP"]
    assert [request.name for request in parse_metrics("AP")] == ["AP"]
    with pytest.raises(InputError, match="at least one metric"):
        parse_metrics([])


def test_a_radius_beyond_the_code_is_refused():
    parse_metrics(["P@r8"], n_bits=8)
    with pytest.raises(InputError, match="'P@r9' must have a radius from 0 to 8"):
        parse_metrics(["AP", "P@r9"], n_bits=8)


def test_a_name_that_is_taken_or_that_no_user_could_write_cannot_be_registered():
    before = registered()
    for name, reason in (
        ("AP", "'AP' is registered already"),
        ("my metric", "letters and digits"),
        ("", "letters and digits"),
    ):
        with pytest.raises(InputError, match=reason):
            register(Metric(name, "a copy", precision, ("rank",)))
    assert register(before[0]) is before[0]
    assert registered() == before
