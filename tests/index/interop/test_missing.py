"""Without a partner's package the error names the extra that brings it; importing needs none."""

import subprocess
import sys

import pytest

from rankbits.errors import MissingExtraError
from rankbits.index import interop

CALLS = {
    "to_faiss": ("faiss", lambda f, index, path: f(index)),
    "from_faiss": ("faiss", lambda f, index, path: f(path)),
    "to_usearch": ("usearch.index", lambda f, index, path: f(index)),
    "from_usearch": ("usearch.index", lambda f, index, path: f(path)),
    "to_parquet": ("pyarrow", lambda f, index, path: f(index, path)),
    "from_parquet": ("pyarrow", lambda f, index, path: f(path)),
    "to_lance": ("lancedb", lambda f, index, path: f(index, path, "t")),
    "from_lance": ("lancedb", lambda f, index, path: f(path, "t")),
    "copy_to_postgres": ("psycopg", lambda f, index, path: f(index, None, "t")),
    "from_postgres": ("psycopg", lambda f, index, path: f(None, "t")),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_missing_package_names_the_extra(monkeypatch, empty, tmp_path, name):
    package, call = CALLS[name]
    if package == "lancedb":
        pytest.importorskip("pyarrow")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{name} needs {package}.*rankbits\[interop\]"):
        call(getattr(interop, name), empty, tmp_path / "file")


def test_importing_the_room_imports_no_partner():
    code = (
        "import sys, rankbits.index.interop; "
        "print(*{'faiss', 'usearch', 'pyarrow', 'lancedb', 'psycopg', 'sklearn', 'scipy'}"
        "& set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
