"""Parameters and attributes of a class: declared once, stored as given, clean within a fit."""

import inspect
from dataclasses import field

import numpy as np
import pytest
from sklearn.base import clone

from rankbits.errors import InputError
from rankbits.methods.parameters.common import RANDOM_STATE, CodeLength, Seed
from rankbits.methods.parameters.docstrings import split_entries, split_sections
from rankbits.methods.parameters.fields import (
    Parameters,
    attribute,
    check_parameters,
    cleaned,
    fact,
    integer,
    learned,
    number,
    optional,
    parameter,
    positive,
    sizes,
)
from rankbits.methods.shallow.shared.linear import LinearHasher

SHARE = parameter(0.5, number(0.0, 1.0), "share : float, default=0.5\n    Of the rows.")


class Thresholds(CodeLength):
    """Some thresholds.

    Parameters
    ----------
    n_rounds : int, default=3
        Rounds.

    References
    ----------
    None.
    """

    n_rounds: int = parameter(3, integer(1))
    share: float = SHARE
    random_state: Seed = RANDOM_STATE

    order_: np.ndarray = learned("b", dtype=np.int64)
    note_: str = fact(str)
    kernel: str | None = attribute()


class FewThresholds(Thresholds):
    """Few thresholds, with a word on the share.

    Parameters
    ----------
    share : float, default=0.25
        Of few rows.
    random_state : int, RandomState or None, default=None
        Seed of a few.
    """

    share: float = parameter(0.25, SHARE.metadata["check"])
    hidden: tuple[int, ...] = parameter((), sizes)
    random_state: Seed = RANDOM_STATE


def entries(cls):
    return split_entries(split_sections(inspect.getdoc(cls))["Parameters"])


def test_the_constructor_takes_parameters_in_their_order_and_no_attribute():
    signature = inspect.signature(Thresholds)
    assert str(signature).replace("'", "").startswith("(n_bits: int = 32, *, n_rounds: int = 3, ")
    assert list(signature.parameters) == ["n_bits", "n_rounds", "share", "random_state"]
    assert not hasattr(Thresholds(), "order_")
    with pytest.raises(TypeError, match="order_"):
        Thresholds(order_=np.arange(3))


def test_the_docstring_has_an_entry_for_each_parameter_in_the_order_of_the_constructor():
    assert list(entries(Thresholds)) == ["n_bits", "n_rounds", "share", "random_state"]
    assert entries(Thresholds)["share"] == "share : float, default=0.5\n    Of the rows."
    assert list(split_sections(inspect.getdoc(Thresholds))) == ["", "Parameters", "References"]


def test_an_entry_of_the_class_replaces_that_of_a_shared_or_inherited_parameter():
    assert entries(FewThresholds)["share"] == "share : float, default=0.25\n    Of few rows."
    assert entries(FewThresholds)["random_state"].endswith("Seed of a few.")
    assert entries(FewThresholds)["n_rounds"] == entries(Thresholds)["n_rounds"]


def test_classes_that_share_a_parameter_do_not_share_what_they_make_of_it():
    assert (Thresholds().share, FewThresholds().share) == (0.5, 0.25)
    assert SHARE.name is None
    assert Thresholds.__dataclass_fields__["share"] is not SHARE


def test_values_are_clean_within_the_context_and_as_given_afterwards():
    given = FewThresholds(np.int64(8), hidden=[np.int64(4)], share=np.float32(0.5))
    before = dict(vars(given))
    with cleaned(given):
        assert (type(given.n_bits), given.hidden, type(given.share)) == (int, (4,), float)
    assert all(vars(given)[name] is value for name, value in before.items())
    with pytest.raises(RuntimeError, match="while fitting"), cleaned(given):
        raise RuntimeError("while fitting")
    assert all(vars(given)[name] is value for name, value in before.items())


def test_every_value_is_checked_and_the_first_that_is_wrong_is_named():
    assert check_parameters(Thresholds())["n_rounds"] == 3
    with pytest.raises(InputError, match="n_bits must be an integer from 1 to 4096, got 0"):
        check_parameters(Thresholds(0, n_rounds=0))
    with pytest.raises(InputError, match="share must be a number from 0 and below 1, got 1"):
        check_parameters(Thresholds(share=1.0))


@pytest.mark.parametrize("value", [0, -1.0, np.inf, np.nan, "1", True])
def test_a_positive_number_is_one(value):
    with pytest.raises(InputError, match="width must be a positive number, got"):
        positive()("width", value)
    with pytest.raises(InputError, match="width must be a positive number or None, got"):
        positive(or_none=True)("width", value)
    assert positive(or_none=True)("width", None) is None
    assert positive()("width", np.float32(0.5)) == 0.5


def test_none_may_be_a_value_of_its_own():
    assert optional(integer(1))("n_rows", None) is None
    with pytest.raises(InputError, match="n_rows must be an integer >= 1"):
        optional(integer(1))("n_rows", 0)


class Scaled(LinearHasher):
    """A method that notes when its fit begins."""

    n_bits: int = field(default=2, kw_only=False, metadata={"check": integer(1, 2)})
    scale: float = parameter(1.0, number(closed=False))
    has_begun = False

    offsets_: np.ndarray = learned("b")
    order_: np.ndarray = learned("b", dtype=np.int64)
    note_: str = fact(str)

    def fit(self, X, y=None):
        self.has_begun, self.seen = True, (self.n_bits, self.scale)
        return self


def test_a_fit_whose_parameters_are_wrong_does_not_begin():
    hasher = Scaled(scale=0)
    with pytest.raises(InputError, match="scale must be a finite number above 0, got 0"):
        hasher.fit(np.eye(3))
    assert not hasher.has_begun
    assert hasher.set_params(scale=2).fit(np.eye(3)).has_begun


def test_a_fit_reads_clean_values_and_leaves_those_that_were_given():
    hasher = Scaled(np.int32(2), scale=np.float32(0.1))
    given = dict(hasher.get_params())
    seen = hasher.fit(np.eye(3)).seen
    assert [type(value) for value in seen] == [int, float]
    assert all(value is given[name] for name, value in hasher.get_params().items())
    assert clone(hasher).get_params() == given


def test_what_is_learned_is_what_the_base_learns_and_what_the_class_declares():
    assert Scaled._arrays == {
        "mean": ("d",),
        "planes": ("d", "b"),
        "offsets": ("b",),
        "order": ("b",),
    }
    assert (Scaled._integers, Scaled._facts) == (("order",), {"note": str})
    assert list(LinearHasher._arrays) == ["mean", "planes"]


def test_a_saved_model_whose_parameters_are_wrong_is_refused():
    hasher = Scaled(scale=-1.0)
    hasher.n_features_in_ = 3
    with pytest.raises(InputError, match="scale must be a finite number above 0, got -1"):
        hasher._restore({}, {})


def test_a_class_without_a_docstring_keeps_none():
    class Bare(Parameters):
        share: float = SHARE

    assert "share" in inspect.signature(Bare).parameters
    assert vars(Bare)["__doc__"] is None
