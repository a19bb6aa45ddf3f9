"""Every error can be caught under one name, and under the usual Python one."""

import pytest

from rankbits import errors


@pytest.mark.parametrize(
    ("error", "also"),
    [
        (errors.InputError, ValueError),
        (errors.FileFormatError, errors.InputError),
        (errors.ClusterError, RuntimeError),
        (errors.FitError, RuntimeError),
        (errors.MissingExtraError, ImportError),
    ],
)
def test_an_error_is_a_rankbits_error_and_a_usual_one(error, also):
    assert issubclass(error, errors.RankbitsError)
    assert issubclass(error, also)
