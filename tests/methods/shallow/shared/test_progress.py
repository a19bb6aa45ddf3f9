"""The bar of a long fit: on standard error, when it is asked for."""

import pytest

from rankbits.errors import InputError
from rankbits.methods.parameters.common import check_verbose
from rankbits.methods.shallow.shared.progress import show_progress


@pytest.mark.parametrize(("verbose", "is_shown"), [(False, False), ("auto", False), (True, True)])
def test_it_counts_steps_and_repeats_what_is_said_of_the_last_one(capsys, verbose, is_shown):
    with show_progress(verbose, "bit", 2) as advance:
        advance("loss 2")
        advance("loss 1")
    out, err = capsys.readouterr()
    assert out == ""
    assert all((word in err) == is_shown for word in ("bit", "2/2", "loss 1"))


def test_other_values_are_refused():
    assert [check_verbose("verbose", value) for value in (True, False, "auto")] == [
        True,
        False,
        "auto",
    ]
    for value in ("yes", 1, None):
        with pytest.raises(InputError, match="verbose must be True, False or 'auto', got"):
            check_verbose("verbose", value)
