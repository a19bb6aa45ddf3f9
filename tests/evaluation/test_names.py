import pytest

from rankbits.errors import InputError
from rankbits.evaluation import Metric, parse_metric, parse_metrics

NAMES = {
    "AP": Metric("AP", "AP"),
    "AP@1000": Metric("AP@1000", "AP", k=1000),
    "AP(min)@1000": Metric("AP(min)@1000", "AP", k=1000, normalise="min"),
    "AP(total)@1000": Metric("AP(total)@1000", "AP", k=1000, normalise="total"),
    "AP.best": Metric("AP.best", "AP", bound="best"),
    "AP.worst": Metric("AP.worst", "AP", bound="worst"),
    "nDCG": Metric("nDCG", "nDCG"),
    "nDCG@100": Metric("nDCG@100", "nDCG", k=100),
    "nDCG(linear)@100": Metric("nDCG(linear)@100", "nDCG", k=100, gain="linear"),
    "nDCG(rsh)": Metric("nDCG(rsh)", "nDCG", gain="linear", discount="rsh"),
    "nDCG(exp,rsh)": Metric("nDCG(exp,rsh)", "nDCG", gain="exp", discount="rsh"),
    "nDCG(rsh,exp)": Metric("nDCG(rsh,exp)", "nDCG", gain="exp", discount="rsh"),
    "nDCG(linear,rsh)@5": Metric("nDCG(linear,rsh)@5", "nDCG", k=5, gain="linear", discount="rsh"),
    "nDCG.best": Metric("nDCG.best", "nDCG", bound="best"),
    "nDCG(linear).worst@7": Metric(
        "nDCG(linear).worst@7", "nDCG", k=7, gain="linear", bound="worst"
    ),
    "P@100": Metric("P@100", "P", k=100),
    "R@100": Metric("R@100", "R", k=100),
    "F1@100": Metric("F1@100", "F1", k=100),
    "Hit@10": Metric("Hit@10", "Hit", k=10),
    "RR": Metric("RR", "RR"),
    "P@r2": Metric("P@r2", "P", radius=2),
    "R@r0": Metric("R@r0", "R", radius=0),
    "F1@r2": Metric("F1@r2", "F1", radius=2),
    "ACG@r3": Metric("ACG@r3", "ACG", radius=3),
    "LGAP@r2": Metric("LGAP@r2", "LGAP", radius=2),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_taken_apart(name):
    assert parse_metric(name) == NAMES[name]


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
        ("MRR", "RR"),
        ("mLGAP@2", "LGAP@r2"),
        ("AP @5", "AP@5"),
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
        ("P", r"takes a rank \(@100\) or a radius \(@r2\)"),
        ("Hit@r2", "Hit takes a rank"),
        ("RR@5", "RR takes none"),
        ("ACG@5", "ACG takes a radius"),
        ("AP@r2", "AP takes none or a rank"),
        ("AP.best@10", "has no bounds"),
        ("P.best@10", "has no bounds"),
        ("AP@0", "the cutoff of metric 'AP@0' must be an integer >= 1, got 0"),
        ("AP(linear)", "one of retrieved, min, total, got 'linear'"),
        ("AP(min,total)@5", "got 'min,total'"),
        ("nDCG(exp,linear)", "one of exp, linear and one of log2, rsh"),
        ("nDCG(exp,exp)", "got 'exp,exp'"),
        ("P(min)@5", "in its brackets nothing"),
    ],
)
def test_a_known_family_with_a_wrong_part_says_which(name, reason):
    with pytest.raises(InputError, match=reason):
        parse_metric(name)


def test_a_list_keeps_its_order_and_drops_repeats_and_one_name_is_a_list():
    assert [metric.name for metric in parse_metrics(["RR", "AP", "RR"])] == ["RR", "AP"]
    assert [metric.name for metric in parse_metrics("AP")] == ["AP"]
    with pytest.raises(InputError, match="at least one metric"):
        parse_metrics([])


def test_a_radius_beyond_the_code_is_refused():
    parse_metrics(["P@r8"], n_bits=8)
    with pytest.raises(InputError, match="'P@r9' must have a radius from 0 to 8"):
        parse_metrics(["AP", "P@r9"], n_bits=8)
