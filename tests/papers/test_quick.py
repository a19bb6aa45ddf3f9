"""The quick profile: every table and figure, from nothing to a page, on embedded data."""

import json
import re

import pytest

from commands import Command
from rankbits import papers
from rankbits.benchmark import load_results

pytestmark = pytest.mark.slow  # a minute in all
pytest.importorskip("matplotlib")
pytest.importorskip("torch")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("quick")
    done = Command("papers")("--all", "--quick", "--out", path, "--threads", 1)
    assert done.exit_code == 0, done.output
    assert re.search(r"^\[170/170\] .*, about 0 s left$", done.stderr, re.MULTILINE)
    return path


def test_every_table_and_figure_is_on_the_page(folder):
    assert Command("report")(folder).exit_code == 0
    page = (folder / "index.html").read_text()
    shown = re.findall(r'<section id="([^"]+)"', page)
    assert [name.removesuffix("-quick") for name in shown] == [e.id for e in papers.exhibits()]
    assert page.count("<svg") == 2 * 12
    first = page
    assert Command("report")(folder).exit_code == 0
    assert (folder / "index.html").read_text() == first


def test_what_is_there_is_not_run_again_and_a_lost_file_is(folder):
    files = sorted(folder.glob("quick-rsh-cifar100-*.json"))
    lost = json.loads(files[3].read_text())
    files[3].unlink()
    seen = []
    chosen = [papers.exhibit("rsh-fig2"), papers.exhibit("rsh-fig5")]
    papers.run(chosen, folder, quick=True, report=seen.append)
    assert [progress.is_old for progress in seen].count(False) == 1
    assert json.loads(files[3].read_text())["metrics"] == lost["metrics"]
    assert [progress.done for progress in seen] == list(range(1, len(seen) + 1))
    assert seen[-1].total == len(seen) == 28  # runs that both figures need count once


def test_quick_results_never_stand_beside_full_ones(folder):
    assert all(name.startswith("quick-") for name in load_results(folder).protocols)
