"""Settings and fixtures that every room's tests share."""

import numpy as np
import pytest
from hypothesis import settings

from rankbits import _check, _native

settings.register_profile("rankbits", deadline=None, max_examples=50, print_blob=True)
settings.load_profile("rankbits")


@pytest.fixture(params=_native.dispatch_levels(), scope="module")
def dispatch(request):
    """Run a test once under each instruction set that this machine has."""
    with _native.dispatched(request.param):
        yield request.param


@pytest.fixture
def hide_package(monkeypatch):
    """A function that makes a package, for the code that asks for extras, one not installed."""
    import_module = _check.importlib.import_module

    def hide(package):
        def importing(name, *relative, **options):
            if name.split(".")[0] == package:
                raise ImportError(name)
            return import_module(name, *relative, **options)

        monkeypatch.setattr(_check.importlib, "import_module", importing)

    return hide


@pytest.fixture
def rng():
    return np.random.default_rng(20)
