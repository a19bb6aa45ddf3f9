"""The script for a compressed folder runs in psql, and its query finds what it should."""

import json
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from postgres import running_postgres
from rankbits import methods
from rankbits.adapters.pgvector import two_stage_script
from rankbits.cli import app
from rankbits.errors import InputError
from rankbits.index import HammingIndex
from rankbits.index.interop import pgvector_bits, pgvector_two_stage_query, pgvector_vectors

TABLE = 'a "b" 100%; it\'s'


@pytest.fixture
def rows(rng):
    return rng.standard_normal((200, 12)).astype(np.float32)


@pytest.fixture
def compressed(rows, tmp_path):
    """A folder as rankbits compress leaves it: the parts that the script reads."""
    hasher = methods.get("itq", n_bits=12, random_state=0).fit(rows)
    index = HammingIndex(12)
    index.add(hasher.encode(rows), ids=np.arange(200) * 3)
    folder = tmp_path / "compressed"
    folder.mkdir()
    hasher.save(folder / "model")
    index.save(folder / "index")
    (folder / "result.json").write_text(json.dumps({"recommendation": {"pool": 50}}))
    return folder


def two_stages(index, codes, queries, rows, k, pool, distance):
    """The two stages by brute force."""
    _, candidates = index.search(codes, pool)
    found = []
    for query, ids in zip(queries, candidates, strict=True):
        ranked = sorted((distance(query, rows[i // 3]), int(i)) for i in ids)
        found.append([i for _, i in ranked[:k]])
    return found


DISTANCES = {
    "cosine": lambda a, b: 1 - a @ b / np.linalg.norm(a) / np.linalg.norm(b),
    "ip": lambda a, b: -(a @ b),
    "l2": lambda a, b: np.linalg.norm(a - b),
}


@pytest.fixture
def open_folder():
    """A folder that every user may read: psql may run as another one."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def test_the_script_adds_the_codes_and_searches_in_two_stages(compressed, rows, open_folder):
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    hasher = methods.load(compressed / "model")
    index, queries = HammingIndex.load(compressed / "index"), rows[:5] + 0.3
    codes = hasher.encode_queries(queries)
    file = open_folder / "it's codes.copy"
    script = two_stage_script(compressed, TABLE, k=7, pool=20, copy_file=file)
    file.chmod(0o644)
    vectors, bits = pgvector_vectors(queries), pgvector_bits(codes)
    name = '"' + TABLE.replace('"', '""') + '"'
    with running_postgres() as server:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
            connection.execute(f"CREATE TABLE {name} (id bigint, embedding vector(12))")
            for i, text in enumerate(pgvector_vectors(rows)):
                connection.execute(f"INSERT INTO {name} VALUES ({3 * i}, '{text}')")
        exact = script.replace("CREATE INDEX", "-- CREATE INDEX")
        calls = [f"EXECUTE search('{b}', '{v}');" for b, v in zip(bits, vectors, strict=True)]
        printed = server.psql("\\pset tuples_only on\n" + exact + "\n".join(calls))
        ids = [int(line.split("|")[0]) for line in printed.splitlines() if "|" in line]
        expected = two_stages(index, codes, queries, rows, 7, 20, DISTANCES["cosine"])
        assert np.reshape(ids, (5, 7)).tolist() == expected
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            for metric, distance in DISTANCES.items():
                query = pgvector_two_stage_query(TABLE, 7, 20, metric)
                answers = [
                    [i for i, _ in connection.execute(query, {"code": b, "vector": v})]
                    for b, v in zip(bits, vectors, strict=True)
                ]
                assert answers == two_stages(index, codes, queries, rows, 7, 20, distance)


def test_the_pool_is_that_of_the_folder_and_an_index_alone_will_do(compressed):
    assert "LIMIT 50" in two_stage_script(compressed)
    assert "LIMIT 60" in two_stage_script(compressed, k=60)
    assert "LIMIT 100" in two_stage_script(compressed / "index")
    (compressed / "result.json").write_text(json.dumps({"recommendation": {"pool": None}}))
    assert "LIMIT 100" in two_stage_script(compressed)


def test_the_command_prints_the_script(compressed, tmp_path):
    arguments = ["index", "sql", str(compressed), "--table", TABLE, "-k", "3", "--similarity", "l2"]
    done = CliRunner().invoke(app, [*arguments, "--copy-file", str(tmp_path / "codes.copy")])
    assert done.exit_code == 0
    expected = two_stage_script(
        compressed, TABLE, 3, metric="l2", copy_file=tmp_path / "codes.copy"
    )
    assert done.stdout == expected
    assert (tmp_path / "codes.copy").stat().st_size > 0
    wrong = CliRunner().invoke(app, ["index", "sql", str(tmp_path / "none")])
    assert (wrong.exit_code, wrong.stderr.count("\n")) == (1, 1)


def test_what_is_no_folder_or_no_number_is_refused(compressed, tmp_path):
    with pytest.raises(InputError, match="there is no"):
        two_stage_script(tmp_path / "none")
    with pytest.raises(InputError, match="pool must be an integer >= 10"):
        two_stage_script(compressed, pool=3)
    with pytest.raises(InputError, match="metric must be one of"):
        two_stage_script(compressed, metric="hamming")
    for content in ("[]", "", "{}", "[" * 10**5, '{"recommendation": {"pool": "x"}}'):
        (compressed / "result.json").write_text(content)
        with pytest.raises(InputError, match=r"is not a result of rankbits compress|pool must be"):
            two_stage_script(compressed)


@pytest.mark.parametrize("rows", [[["a"]], [[np.nan]], [1.0]])
def test_vectors_must_be_finite_numbers(rows):
    with pytest.raises(InputError, match=r"^rows must"):
        pgvector_vectors(rows)
