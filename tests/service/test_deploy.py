"""The container recipe and the systemd unit, as far as they can be checked without a daemon."""

import configparser
import itertools
import json
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from typer.main import get_command

from rankbits.cli import app

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
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
    assert [name for name, _ in steps if name in ("ARG", "FROM", "ENTRYPOINT", "USER")] == [
        "ARG",
        "FROM",
        "FROM",
        "USER",
        "ENTRYPOINT",
    ]
    known = {"RUN", "WORKDIR", "COPY", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK"}
    assert {name for name, _ in steps} <= known | {"ARG", "FROM", "USER", "ENTRYPOINT"}
    ignored = (ROOT / "deploy" / "Dockerfile.dockerignore").read_text()
    for name in re.findall(r"^!(\S+)$", ignored, re.MULTILINE):
        assert (ROOT / name).exists(), name
    copied = {"deploy/requirements.lock", "deploy/build.lock"}
    needed = {"pyproject.toml", "CMakeLists.txt", "src", "README.md", "licenses", "LICENSE"}
    for name in needed | copied:
        assert f"!{name}\n" in ignored
    assert all(name in DOCKERFILE for name in copied)


def test_the_image_stands_on_an_image_that_somebody_names():
    bases = [words for name, words in instructions() if name in ("ARG", "FROM")]
    assert bases == ["PYTHON_IMAGE", "${PYTHON_IMAGE} AS build", "${PYTHON_IMAGE}"]


def test_the_image_takes_python_packages_by_their_hashes_alone():
    text = " && ".join(words for name, words in instructions() if name == "RUN")
    commands = [one.strip() for one in text.split("&&") if "/pip " in one]
    assert len(commands) == 4
    for command in commands:
        is_ours = "--no-deps" in command and ("--no-index" in command or " wheel " in command)
        assert is_ours or "--require-hashes" in command
        assert " wheel " not in command or "--no-build-isolation" in command


def locked(name):
    """Version and hashes of each package of a lock file."""
    text = (DEPLOY / f"{name}.lock").read_text()
    assert "://" not in text
    assert "--index" not in text
    packages = {}
    for block in re.findall(r"^[^\s#][^\n]*(?:\n[ ]+[^\n]*)*", text, re.MULTILINE):
        package, version = re.match(r"([\w.-]+)==([\w.!+]+)", block).groups()
        packages[package] = version, re.findall(r"--hash=sha256:([0-9a-f]{64})\b", block)
    return packages


def requirements_of_the_image():
    """What pyproject.toml says of the package and of the extras that make lock names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = re.findall(r"--extra (\w+)", (ROOT / "Makefile").read_text())
    assert extras == ["serve", "files", "images"]
    lists = [project["dependencies"], *(project["optional-dependencies"][one] for one in extras)]
    return [Requirement(one) for one in itertools.chain(*lists)]


def test_the_lock_covers_what_the_package_and_its_extras_require():
    packages = locked("requirements")
    for requirement in requirements_of_the_image():
        version, hashes = packages[canonicalize_name(requirement.name)]
        assert version in requirement.specifier, requirement
        assert hashes
    assert all(hashes for _, hashes in packages.values())


def test_the_lock_of_the_build_is_that_of_the_build_system():
    system = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    lines = (DEPLOY / "build.in").read_text().splitlines()
    assert {Requirement(one) for one in system} <= {
        Requirement(line) for line in lines if not line.startswith("#")
    }
    packages = locked("build")
    for line in (line for line in lines if not line.startswith("#")):
        requirement = Requirement(line)
        version, hashes = packages[requirement.name]
        assert version in requirement.specifier
        assert hashes


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
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(UNIT)
    program, command, *_ = shlex.split(unit["Service"]["ExecStart"])
    assert (program.rsplit("/", 1)[1], command) == ("rankbits", "serve")
    assert int(unit["Service"]["TimeoutStopSec"]) > 30
    done = analyze(tmp_path, "verify")
    assert "rankbits.service" not in done.stderr, done.stderr


def analyze(folder, *command):
    """What systemd-analyze says of the unit."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed: the unit was parsed, not verified")
    text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", UNIT.read_text(), flags=re.MULTILINE)
    (folder / "rankbits.service").write_text(text)
    words = ["systemd-analyze", *command, folder / "rankbits.service"]
    return subprocess.run(words, capture_output=True, text=True)


def test_the_unit_bounds_what_the_server_may_do_and_take(tmp_path):
    lines = UNIT.read_text().splitlines()
    for line in (
        "SystemCallFilter=@system-service",
        "SystemCallFilter=~@privileged @resources",
        "ProtectProc=invisible",
        "NoNewPrivileges=yes",
    ):
        assert line in lines
    for name in ("MemoryMax", "TasksMax", "LimitNOFILE"):
        assert any(line.startswith(f"{name}=") for line in lines)
    done = analyze(tmp_path, "security", "--offline=true", "--no-pager", "--threshold=15")
    assert done.returncode == 0, done.stdout  # exposure of 1.5 at most, of 10
