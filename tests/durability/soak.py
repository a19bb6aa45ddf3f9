"""Everything that attacks rankbits, one after the other, and one table of what came of it.

    python tests/durability/soak.py --quick
    make soak    # with builds for AddressSanitizer and ThreadSanitizer; under an hour on two cores

A check that fails does not stop the others. What it said is in the folder of logs; a line
`"repeat"` there is the command that repeats a violation.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
TOP = HERE.parent.parent
sys.path.insert(0, str(TOP / "tools"))

import measurements

CONNECTIONS = str(TOP / "tests/service/connections.py")
ATTACKS = str(TOP / "tests/service/attacks.py")
CLUSTER = str(TOP / "tests/distributed/soak.py")
NATIVE_TESTS = (  # all that call kernels; training and commands reach them through the same doors
    "tests/native",
    "tests/codes",
    "tests/histogram",
    "tests/metrics",
    "tests/objectives",
    "tests/index",
    "tests/contracts/test_index.py",
    "tests/contracts/test_affinities.py",
)
SHORT_SUITE = ("tests/native", "tests/index/test_collection.py", "tests/index/disk")
TESTS_WITH_THREADS = ("tests/native", "tests/contracts/test_index.py", "tests/histogram")


@dataclass
class Check:
    """A command, the build of rankbits that it needs, and how much it does when in a hurry."""

    name: str
    build: str  # plain, address, thread
    full: list
    quick: list
    must_fail: bool = False
    minutes: int = 25  # after which it counts as hanging


def tool(name, full, quick, build="plain", title=None, minutes=25):
    """One of the tools of this folder, which prints its counts as JSON."""
    path = str(HERE / f"{name}.py")
    full, quick = [path, *full.split()], [path, *quick.split()]
    return Check(title or name, build, full, quick, minutes=minutes)


def suite(name, build, full, quick):
    """Tests, on a build with a sanitizer."""
    command = ["-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "-m", "not unsanitized"]
    return Check(name, build, [*command, *full], [*command, *quick], minutes=40)


def fuzz(seconds):
    return [str(TOP / "tests/fuzz/fuzz_loaders.py"), "--seconds", str(seconds)]


CHECKS = [
    suite("suite, address and undefined", "address", NATIVE_TESTS, SHORT_SUITE),
    Check("a race on purpose", "thread", *[[str(HERE / "race.py")]] * 2, must_fail=True),
    suite("threads", "thread", TESTS_WITH_THREADS, ["tests/contracts/test_index.py"]),
    Check("fuzz", "plain", fuzz(240), fuzz(15)),
    tool("killing", "--every 1 --scripts 2 --random 1000", "--every 17 --random 40"),
    tool("failing", "--scripts 1", "--every 23"),
    tool(
        "failing",
        "--looks --scripts 2 --random 1250 --saves 350",
        "--looks --random 60 --saves 28",
        title="failing, any call",
    ),
    tool("power_loss", "--scripts 3 --random 10", "--random 3 --steps 12"),
    tool(
        "power_loss", "--random 20 --unordered", "--unordered --steps 6", title="power_loss, names"
    ),
    tool("hostile", "--cases 10000", "--cases 500", build="address"),
    tool("hostile_models", "--cases 3000", "--cases 250 --quick", build="address", minutes=40),
    tool("cutting", "--cases 4000", "--cases 200"),
    tool("interrupts", "--interrupts 150 --commands 40", "--interrupts 25 --commands 8"),
    tool("writers", "--rounds 100", "--rounds 15"),
    Check(
        "connections",
        "plain",
        [CONNECTIONS, "--seconds", "8", "--sockets", "600"],
        [CONNECTIONS, "--together", "--seconds", "6", "--sockets", "300"],
    ),
    Check("attacks", "plain", [ATTACKS, "--seconds", "6"], [ATTACKS, "--seconds", "0.5"]),
    Check("cluster", "plain", [CLUSTER, "--kills", "200"], [CLUSTER, "--kills", "15"]),
]


def environment_of(build, compiler):
    """What a build with a sanitizer needs in its environment."""
    if build == "plain":
        return dict(os.environ)
    names = {"address": ("libasan.so", "libubsan.so"), "thread": ("libtsan.so",)}[build]
    paths = [
        subprocess.run(
            [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in names
    ]
    return {
        **os.environ,
        "LD_PRELOAD": " ".join(paths),
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        # Python and NumPy are not instrumented: what they do is not looked at. Tests fork.
        "TSAN_OPTIONS": (
            "ignore_noninstrumented_modules=1:exitcode=66:halt_on_error=1:die_after_fork=0"
        ),
    }


def command_of(check, options, python):
    arguments = check.quick if options.quick else check.full
    command = [python, *arguments]
    if arguments[0].endswith(".py") and "race" not in arguments[0]:
        command += ["--seed", str(options.seed)]
        if "fuzz" not in arguments[0]:
            command += ["--keep-going", *(["--folder", options.folder] if options.folder else [])]
    if check.build == "thread":  # ThreadSanitizer wants its memory where it expects it
        command = ["setarch", "-R", *command]
    return command


def run(check, options, log):
    """Sentence of what was done, number of violations (None: not run), seconds."""
    python = {"plain": sys.executable, "address": options.address, "thread": options.thread}
    if python[check.build] is None:
        return f"not run: no build for {check.build}", None, 0.0
    start = time.monotonic()
    command = command_of(check, options, python[check.build])
    environment = environment_of(check.build, options.compiler)
    environment |= {"PYTHONFAULTHANDLER": "1"}
    if check.build == "thread":  # setarch itself must not load the library
        library = environment.pop("LD_PRELOAD")
        command = [*command[:2], "env", f"LD_PRELOAD={library}", *command[2:]]
    with log.open("w") as file:
        file.write(f"{' '.join(map(str, command))}\n")
        file.flush()
        try:
            process = subprocess.run(
                command,
                cwd=TOP,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                timeout=60 * check.minutes,
            )
            output, code = process.stdout, process.returncode
        except subprocess.TimeoutExpired as error:
            output, code = (error.stdout or b"").decode(errors="replace"), "no end"
        file.write(output)
    return *summary(check, output, code, log), time.monotonic() - start


def summary(check, output, code, log):
    """What a check did, in a few words, and its number of violations."""
    if check.must_fail:
        is_reported = "ThreadSanitizer: data race" in log.read_text()
        return ("reported, as it must be", 0) if is_reported else ("not reported", 1)
    last = (output.strip().splitlines() or [""])[-1]
    if last.startswith("{"):
        counts = json.loads(last)
        n = counts.pop("violations")
        sorts = counts.pop("by_sort", {})
        for name in ("tool", "seconds"):
            counts.pop(name)
        scalars = {name: value for name, value in counts.items() if not isinstance(value, dict)}
        words = ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in scalars.items())
        words += "".join(f"; **{number} × {sort}**" for sort, number in sorts.items())
        return words, n
    numbers = {word: int(n) for n, word in re.findall(r"(\d+) (\w+)", last)}
    n = numbers.get("failed", 0) + numbers.get("failures", 0) + numbers.get("errors", 0)
    if code and not n:
        last, n = f"ended with {code}: {last}", 1
    return last.strip("= "), n


COLUMNS = ("Check", "What it did", "Violations", "Seconds")


def cells(rows):
    return [
        (name, words.replace("|", "/"), "–" if n is None else n, round(seconds))
        for name, words, n, seconds in rows
    ]


def table(rows):
    lines = [COLUMNS, ["---"] * len(COLUMNS), *cells(rows)]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def chosen_names(beginnings):
    """The checks of these names, or of names that begin so."""
    names = [check.name for check in CHECKS]
    groups = ([b] if b in names else [n for n in names if n.startswith(b)] for b in beginnings)
    return {name for group in groups for name in group}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few minutes")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 10**6)
    parser.add_argument("--only", nargs="*", help="checks whose names begin so")
    parser.add_argument("--address", help="Python with a build for AddressSanitizer")
    parser.add_argument("--thread", help="Python with a build for ThreadSanitizer")
    parser.add_argument("--compiler", default=os.environ.get("CXX", "c++"))
    parser.add_argument("--save", type=Path, help="file for the table, such as that of the docs")
    parser.add_argument("--logs", type=Path, default=TOP / "out" / "soak")
    parser.add_argument("--folder", default="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    options = parser.parse_args()
    shutil.rmtree(options.logs, ignore_errors=True)
    options.logs.mkdir(parents=True)
    rows = []
    for check in CHECKS:
        if options.only and check.name not in chosen_names(options.only):
            continue
        log = options.logs / (re.sub(r"\W+", "-", check.name) + ".log")
        words, n, seconds = run(check, options, log)
        rows.append((check.name, words, n, seconds))
        sys.stderr.write(f"{check.name}: {n} violations, {seconds:.0f} s; {log}\n")
        if options.save:
            measurements.save(options.save, "make soak", COLUMNS, cells(rows))
    n_violations = sum(n or 0 for _, _, n, _ in rows)
    minutes = sum(seconds for *_, seconds in rows) / 60
    sys.stdout.write(f"{table(rows)}\n\nSeed {options.seed}, {minutes:.0f} minutes, ")
    sys.stdout.write(f"{n_violations} violations.\n")
    sys.exit(n_violations > 0)


if __name__ == "__main__":
    main()
