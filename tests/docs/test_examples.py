"""Every example of the documentation runs, and prints what the page says it prints.

A ```python block runs as it stands; a `print(...)` is followed by what it prints, as a comment on
the same line or below. A ```console block holds commands after "$ " and lines of their output;
"..." stands for lines left out. Blocks of one page share a namespace and a folder.
"""

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rankbits.cli import app

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
SLOW_PAGES = ["docs/learn.md", "docs/scale.md"]  # examples that train, and that start Ray
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMISE = re.compile(r"^print\(.*\)(?:  |\n)# (.*)$", re.MULTILINE)
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
VARIES = re.compile(r"argsort|talr-|\.\.\.$")  # numpy's argsort and training vary by machine


def is_same(printed, promised):
    """Equal words, and numbers equal to the last digit shown, give or take one."""
    mine, theirs = (" ".join(NUMBER.sub("#", text).split()) for text in (printed, promised))
    pairs = zip(NUMBER.findall(printed), NUMBER.findall(promised), strict=False)
    return mine == theirs and all(float(a) == near(b) for a, b in pairs)


def near(number):
    decimals = len(number.partition("e")[0].partition(".")[2])
    return pytest.approx(float(number), rel=1e-9, abs=1.5 * 10**-decimals if decimals else 0)


def missing_lines(printed, promised):
    """Promised lines that do not come in this order; a line without a word or number is not one."""
    output = iter(printed.splitlines())
    wanted = [line for line in promised if re.search(r"\w", line) and not VARIES.search(line)]
    return [line for line in wanted if not any(is_same(found, line) for found in output)]


def run_python(source, namespace):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(source, namespace)
    promised = PROMISE.findall(source)
    assert len(promised) == len(re.findall(r"\bprint\(", source)), "a print without its output"
    assert not missing_lines(printed.getvalue(), promised), printed.getvalue()


def run_console(text):
    for part in re.split(r"^\$ ", text.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        command, *promised = part.splitlines()
        program, *arguments = shlex.split(command)
        assert program == "rankbits", command
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == (1 if promised and promised[0].startswith("error:") else 0), (
            done.output
        )
        assert not missing_lines(done.output, promised), done.output


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] * (page in SLOW_PAGES)) for page in PAGES],
)
def test_examples_run_and_print_what_they_promise(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for language, source in BLOCK.findall((ROOT / page).read_text()):
        if language == "python":
            run_python(source, namespace)
        else:
            run_console(source)


def test_a_wrong_number_or_word_is_noticed():
    assert not missing_lines("a  0.31601 b\nnext 7\n", ["a 0.3160 b", "...", "next 7"])
    assert missing_lines("a 0.3170 b\n", ["a 0.3160 b"])
    assert missing_lines("a 0.3160 c\n", ["a 0.3160 b"])
