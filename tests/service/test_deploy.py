"""The container recipe and the systemd unit, as far as they can be checked without a daemon."""

import configparser
import json
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from rankbits.cli import app

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()
UNIT = ROOT / "deploy" / "rankbits.service"


def options_of_serve():
    command = get_command(app).commands["serve"]
    return {option for parameter in command.params for option in parameter.opts}


def instructions():
    """(name, arguments) of a Dockerfile, continued lines joined."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE).replace("\\\n", " ")
    return [line.split(maxsplit=1) for line in text.splitlines() if line.strip()]


def test_the_image_is_built_of_what_the_package_needs():
    steps = instructions()
    assert [name for name, _ in steps if name in ("FROM", "ENTRYPOINT", "USER")] == [
        "FROM",
        "FROM",
        "USER",
        "ENTRYPOINT",
    ]
    known = {"FROM", "RUN", "WORKDIR", "COPY", "USER", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK"}
    assert {name for name, _ in steps} <= known | {"ENTRYPOINT"}
    extras = re.search(r"'\.\[([\w,]+)\]'", DOCKERFILE)[1].split(",")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(extras) <= set(project["optional-dependencies"])
    ignored = (ROOT / "deploy" / "Dockerfile.dockerignore").read_text()
    for name in re.findall(r"^!(\S+)$", ignored, re.MULTILINE):
        assert (ROOT / name).exists(), name
    for name in ("pyproject.toml", "CMakeLists.txt", "src", "README.md", "licenses", "LICENSE"):
        assert f"!{name}" in ignored


def test_the_image_runs_as_nobody_in_particular_and_tells_whether_it_is_ready():
    steps = dict(instructions())
    assert steps["USER"] == "rankbits"
    entry = json.loads(steps["ENTRYPOINT"])
    assert entry[1] == "serve"
    assert {word for word in entry if word.startswith("--")} <= options_of_serve()
    check = json.loads(steps["HEALTHCHECK"].split("CMD", 1)[1])
    compile(check[-1], "healthcheck", "exec")
    assert "/readyz" in check[-1]


@pytest.mark.parametrize("text", [DOCKERFILE, UNIT.read_text()], ids=["Dockerfile", "unit"])
def test_every_option_that_is_named_exists(text):
    commands = re.findall(r"(?:^#\s+/data/.*|--writable.*|ExecStart=.*)", text, re.MULTILINE)
    words = {word for line in commands for word in re.findall(r"(--[a-z-]+)", line)}
    assert words
    assert words <= options_of_serve()


def test_the_unit_is_one_that_systemd_reads(tmp_path):
    unit = configparser.ConfigParser(strict=True, interpolation=None)
    unit.optionxform = str
    unit.read(UNIT)
    program, command, *_ = shlex.split(unit["Service"]["ExecStart"])
    assert (program.rsplit("/", 1)[1], command) == ("rankbits", "serve")
    assert int(unit["Service"]["TimeoutStopSec"]) > 30
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed: the unit was parsed, not verified")
    text = UNIT.read_text().replace(program, "/bin/true")
    (tmp_path / "rankbits.service").write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / "rankbits.service"], capture_output=True, text=True
    )
    assert "rankbits.service" not in done.stderr, done.stderr
