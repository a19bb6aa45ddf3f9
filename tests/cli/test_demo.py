import json
from html.parser import HTMLParser

import numpy as np
import pytest
from typer.testing import CliRunner

from rankbits import affinity, evaluate, methods
from rankbits.cli import app
from rankbits.cli._demo import METRICS, first_of_each, training_rows
from rankbits.datasets import digits

NAMES = ["talr-ap", "sign", "lsh"]
pytestmark = pytest.mark.slow  # the demo is run several times


def call(*arguments):
    return CliRunner().invoke(app, ["demo", *map(str, arguments)])


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    return folder, call("--out", folder)


@pytest.fixture(scope="module")
def results(done):
    return json.loads((done[0] / "results.json").read_text())


@pytest.fixture(scope="module")
def split():
    return digits(random_state=0)


@pytest.fixture(scope="module")
def codes(split):
    """(queries, database) by method, encoded without the command."""
    rows = training_rows(1500, 0)
    learned = {"validation_fraction": 0.2, "device": "cpu", "n_threads": 1, "random_state": 0}
    params = {"talr-ap": learned, "sign": {}, "lsh": {"random_state": 0}}
    fitted = {
        name: methods.get(name, n_bits=32, **params[name]).fit(
            split.database_x[rows], split.database_y[rows]
        )
        for name in NAMES
    }
    return {
        name: (hasher.encode(split.query_x), hasher.encode(split.database_x))
        for name, hasher in fitted.items()
    }


def test_it_prints_json_and_says_on_standard_error_what_it_wrote(done):
    folder, result = done
    assert result.exit_code == 0, result.stderr
    shown = json.loads(result.stdout)
    assert shown["page"] == str(folder / "index.html")
    assert f"wrote {folder / 'index.html'}" in result.stderr
    names = [".rankbits.json", "compressed", "index.html", "results.json", "served"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert "of nDCG@10" in shown["compressed"]
    assert (folder / "compressed" / "index.html").is_file()


def test_results_hold_the_metrics_and_audit_of_each_method(done, results):
    shown = json.loads(done[1].stdout)["codes"]
    assert list(shown) == list(results["codes"]) == NAMES
    for name, row in results["codes"].items():
        metrics, ap = row["metrics"], row["audit"]["ap"]
        assert tuple(metrics) == METRICS
        assert metrics == shown[name]["metrics"]
        bounds = [metrics[key] for key in ("AP.worst", "AP", "AP.best")]
        assert bounds == pytest.approx([ap["worst"], ap["expected"], ap["best"]], abs=1e-15)
        assert bounds[0] < bounds[1] < bounds[2]
    assert (results["queries"], results["database"], results["trained on"]) == (297, 1500, 750)


def test_scores_are_those_that_evaluate_gives_the_fitted_methods(results, split, codes):
    relevant = affinity.classes(split.query_y, split.database_y)
    for name, pair in codes.items():
        wanted = evaluate(*pair, relevant, METRICS).mean
        assert results["codes"][name]["metrics"] == pytest.approx(wanted, abs=1e-12)


def test_sign_codes_score_what_their_bits_score(results, split):
    trained = split.database_x[training_rows(1500, 0)]
    widest = np.argsort(-trained.var(axis=0), kind="stable")[:32]
    mean = trained.mean(axis=0)
    bits = [(x > mean)[:, widest] for x in (split.query_x, split.database_x)]
    same = split.query_y[:, None] == split.database_y[None]
    distances = (bits[0][:, None] != bits[1][None]).sum(axis=2)
    values = []
    for row, relevant in zip(distances, same, strict=True):
        n, p = (np.bincount(row[kept], minlength=33) for kept in (row >= 0, relevant))
        ends = np.cumsum(n)
        found = 0.0
        for tie in np.flatnonzero(p):
            ranks = np.arange(ends[tie] - n[tie] + 1, ends[tie] + 1)
            share = (p[tie] - 1) / max(n[tie] - 1, 1) * np.arange(n[tie])
            found += p[tie] / n[tie] * ((p[:tie].sum() + 1 + share) / ranks).sum()
        values.append(found / p.sum())
    shown = results["codes"]["sign"]["metrics"]
    assert shown["AP"] == pytest.approx(np.mean(values), abs=1e-10)


def test_learned_codes_rank_far_better_than_both_yardsticks(results):
    learned, *others = (results["codes"][name]["metrics"]["AP"] for name in NAMES)
    assert learned > 0.9
    assert max(others) < 0.65


def test_half_of_the_database_is_learned_from_and_its_choice_follows_the_seed():
    rows = training_rows(1500, 7)
    assert len(set(rows.tolist())) == 750
    assert (rows >= 0).all()
    assert (rows < 1500).all()
    assert (np.diff(rows) > 0).all()
    assert rows.tolist() == training_rows(1500, 7).tolist() != training_rows(1500, 8).tolist()


def test_the_history_is_that_of_the_training_without_its_times(results):
    epochs = [epoch["epoch"] for epoch in results["history"]]
    assert epochs == list(range(1, len(epochs) + 1))
    assert all(set(epoch) == {"epoch", "loss", "score"} for epoch in results["history"])
    assert results["history"][-1]["loss"] < 0.2 < results["history"][0]["loss"]
    assert all(0 < epoch["score"] < 1 for epoch in results["history"])


class Parts(HTMLParser):
    """Headings, what figures say of themselves, cells of tables, and the lists of pictures."""

    def __init__(self, text):
        super().__init__()
        self.headings, self.figures, self.cells, self.queries = [], [], [], []
        self.place = ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        facts = dict(attributes)
        self.place = tag
        if tag == "svg":
            self.figures.append(facts["aria-label"])
        if tag == "img" and facts["alt"].startswith("query: "):
            self.queries.append((facts["alt"], []))
        elif tag == "ol":
            self.queries[-1][1].append([])
        elif tag == "img":
            self.queries[-1][1][-1].append(facts["alt"])

    def handle_data(self, data):
        kept = {"h2": self.headings, "h3": self.headings, "td": self.cells, "th": self.cells}
        if self.place in kept and data.strip():
            kept[self.place].append(data)


@pytest.fixture(scope="module")
def parts(done):
    return Parts((done[0] / "index.html").read_text())


def test_the_page_has_every_part(parts, results):
    assert parts.headings[:6] == [
        "Exact scores",
        "How far relevant and irrelevant items lie",
        "How training went",
        "Queries and their nearest pictures",
        "The first query of each digit",
        "The three queries that talr-ap ranks worst",
    ]
    assert "One of them in detail: talr-ap" in parts.headings
    kinds = ("Range of", "Distances of", "Average precision of training", "Points", "Mean number")
    for kind in kinds:
        assert len([words for words in parts.figures if words.startswith(kind)]) == 2
    best = max(epoch["score"] for epoch in results["history"])
    assert any(f"held-out rows {best:.3f}" in words for words in parts.figures)


def test_the_first_table_has_a_line_of_scores_for_each_method(parts, results):
    wanted = ["codes", *METRICS]
    for name in NAMES:
        scores = results["codes"][name]["metrics"].values()
        wanted += [name, *(f"{score:.4f}" for score in scores)]
    assert parts.cells[: len(wanted)] == wanted


def test_the_pictures_are_the_nearest_of_each_query(parts, split, codes):
    relevant = affinity.classes(split.query_y, split.database_y)
    ap = evaluate(*codes["talr-ap"], relevant).per_query["AP"]
    hardest = sorted(range(297), key=lambda query: (ap[query], query))[:3]
    firsts = [split.query_y.tolist().index(digit) for digit in range(10)]
    for query, (words, lists) in zip([*firsts, *hardest], parts.queries, strict=True):
        label = split.query_y[query]
        assert words == f"query: {label}"
        for name, shown in zip(("talr-ap", "lsh"), lists, strict=True):
            asked, items = (side.bits() for side in codes[name])
            order = sorted(((item != asked[query]).sum(), row) for row, item in enumerate(items))
            assert shown == [
                f"{digit}, distance {distance}, {'' if digit == label else 'ir'}relevant"
                for distance, row in order[:8]
                for digit in [split.database_y[row]]
            ]


def test_the_first_of_each_label_is_its_least_row():
    assert first_of_each(np.array([2, 0, 2, 1, 0])).tolist() == [1, 3, 0]


def test_a_second_run_writes_the_same_bytes(done, tmp_path):
    assert call("--out", tmp_path).exit_code == 0
    for name in ("index.html", "results.json"):
        assert (tmp_path / name).read_bytes() == (done[0] / name).read_bytes()


def test_the_table_has_a_line_for_each_method(tmp_path):
    shown = call("--out", tmp_path, "--format", "table", "--seed", "3").stdout
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["seed"] == 3
    for name, row in results["codes"].items():
        line = next(line for line in shown.splitlines() if name in line)
        assert line.split() == [name, *(f"{value:.4f}" for value in row["metrics"].values())]
    assert f"page: {tmp_path / 'index.html'}" in shown
    assert "compressed from 256 bytes: " in shown


@pytest.mark.parametrize(
    ("missing", "extra"), [("torch", "train"), ("matplotlib", "report"), ("jinja2", "report")]
)
def test_a_missing_extra_is_named_before_any_work(hide_package, tmp_path, missing, extra):
    hide_package(missing)
    result = call("--out", tmp_path / "out")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1
    assert f"needs {missing}; install it with: pip install 'rankbits[{extra}]'" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_place_of_the_folder_exits_1(tmp_path):
    (tmp_path / "taken").write_text("mine")
    for out, says in (("taken", "--out must name a folder"), ("taken/below", "taken/below")):
        result = call("--out", tmp_path / out)
        assert (result.exit_code, result.stdout) == (1, "")
        assert says in result.stderr
        assert result.stderr.count("\n") == 1
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.parametrize("name", ["index.html", "results.json", "served/notes.txt"])
def test_files_of_the_users_are_not_replaced_and_stop_it_before_any_work(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    result = call("--out", tmp_path)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert name.rpartition("/")[2] in result.stderr or "served" in result.stderr
    assert (tmp_path / name).read_text() == "mine"
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1


def test_bad_usage_exits_2():
    assert call("--seed", "-1").exit_code == 2
    assert call("--format", "xml").exit_code == 2
