import json
from itertools import pairwise

import numpy as np
import pytest
from typer.testing import CliRunner

from rankbits.cli import app
from rankbits.cli._demo import METRICS, encoded
from rankbits.datasets import digits


def call(*arguments):
    return CliRunner().invoke(app, ["demo", *map(str, arguments)])


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    return folder, call("--out", folder)


def test_it_prints_json_and_says_on_standard_error_what_it_wrote(done):
    folder, result = done
    assert result.exit_code == 0, result.stderr
    shown = json.loads(result.stdout)
    assert shown["page"] == str(folder / "index.html")
    assert f"wrote {folder / 'index.html'}" in result.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["index.html", "results.json"]


def test_results_hold_the_metrics_and_audit_of_each_code(done):
    folder, result = done
    results = json.loads((folder / "results.json").read_text())
    shown = json.loads(result.stdout)["codes"]
    assert list(shown) == list(results["codes"])
    assert len(shown) == 4
    for name, row in results["codes"].items():
        assert tuple(row["metrics"]) == METRICS
        assert row["metrics"] == shown[name]["metrics"]
        assert row["metrics"]["AP"] == pytest.approx(row["audit"]["ap"]["expected"], abs=1e-15)
        low, high = shown[name]["AP range"]
        assert low < row["metrics"]["AP"] < high
    assert (results["queries"], results["database"]) == (297, 1500)


def test_sign_codes_score_what_their_bits_score(done):
    split = digits(random_state=0)
    bits = [x > split.database_x.mean(axis=0) for x in (split.query_x, split.database_x)]
    same = split.query_y[:, None] == split.database_y[None]
    distances = (bits[0][:, None] != bits[1][None]).sum(axis=2)
    values = []
    for row, relevant in zip(distances, same, strict=True):
        n, p = (np.bincount(row[kept], minlength=65) for kept in (row >= 0, relevant))
        ends = np.cumsum(n)
        found = 0.0
        for tie in np.flatnonzero(p):
            ranks = np.arange(ends[tie] - n[tie] + 1, ends[tie] + 1)
            share = (p[tie] - 1) / max(n[tie] - 1, 1) * np.arange(n[tie])
            found += p[tie] / n[tie] * ((p[:tie].sum() + 1 + share) / ranks).sum()
        values.append(found / p.sum())
    shown = json.loads(done[1].stdout)["codes"]["sign, 64 bits"]["metrics"]
    assert shown["AP"] == pytest.approx(np.mean(values), abs=1e-10)


def test_more_hyperplanes_rank_better_and_random_ones_beat_chance(done):
    shown = json.loads(done[1].stdout)["codes"]
    scores = [shown[f"hyperplanes, {bits} bits"]["metrics"]["AP"] for bits in (16, 32, 64)]
    assert all(a < b for a, b in pairwise(scores))
    assert scores[0] > 0.2


def test_a_bit_is_the_side_of_its_hyperplane():
    x, planes = np.array([[1.0, 3.0], [5.0, 1.0]]), np.array([[1.0, 0.0], [-1.0, 1.0]])
    codes = encoded(x, np.array([2.0, 2.0]), planes)
    assert codes.bits().tolist() == [[0, 1], [1, 0]]
    assert encoded(x, np.array([2.0, 2.0]), None).bits().tolist() == [[0, 1], [1, 0]]


def test_a_second_run_writes_the_same_bytes(done, tmp_path):
    assert call("--out", tmp_path).exit_code == 0
    for name in ("index.html", "results.json"):
        assert (tmp_path / name).read_bytes() == (done[0] / name).read_bytes()


def test_the_page_shows_all_codes_and_every_score(done):
    page = (done[0] / "index.html").read_text()
    results = json.loads((done[0] / "results.json").read_text())
    for name, row in results["codes"].items():
        assert name in page
        for value in row["metrics"].values():
            assert f"{value:.4f}" in page


def test_the_table_has_a_line_for_each_code(tmp_path):
    shown = call("--out", tmp_path, "--format", "table", "--seed", "3").stdout
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["seed"] == 3
    for name, row in results["codes"].items():
        line = next(line for line in shown.splitlines() if name in line)
        assert f"{row['metrics']['nDCG']:.4f}" in line
    assert f"page: {tmp_path / 'index.html'}" in shown


def test_a_file_in_the_place_of_the_folder_exits_1(tmp_path):
    (tmp_path / "taken").write_text("mine")
    for out, says in (("taken", "--out must name a folder"), ("taken/below", "taken/below")):
        result = call("--out", tmp_path / out)
        assert (result.exit_code, result.stdout) == (1, "")
        assert says in result.stderr
        assert result.stderr.count("\n") == 1
    assert (tmp_path / "taken").read_text() == "mine"


def test_bad_usage_exits_2():
    assert call("--seed", "-1").exit_code == 2
    assert call("--format", "xml").exit_code == 2
