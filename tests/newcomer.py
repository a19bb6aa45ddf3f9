"""What somebody does who has just cloned the repository: the README, from top to bottom.

    python tests/newcomer.py [FOLDER]

clones into a new folder, installs as the README says, and runs its commands and snippets as they
are printed. It needs the network and several minutes; `tests/docs/test_newcomer.py` does the same
with what is installed already.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)$", re.MULTILINE)


def clone(folder):
    """A fresh clone of what is committed."""
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)


def snippets(readme):
    """All Python of the page as one program, and all commands as one script."""
    blocks = BLOCK.findall(readme)
    program = "\n".join(source for language, source in blocks if language == "python")
    consoles = "\n".join(source for language, source in blocks if language == "console")
    return program, "\n".join(COMMAND.findall(consoles))


def run_snippets(readme, folder, binaries):
    """Run the Python and then the commands of the page, with the programs of one environment."""
    program, script = snippets(readme)
    environment = {**os.environ, "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}"}
    options = {"cwd": folder, "env": environment, "check": True}
    printed = subprocess.run(
        [str(binaries / "python"), "-c", program], capture_output=True, text=True, **options
    )
    subprocess.run(["bash", "-e", "-c", script], stdout=subprocess.DEVNULL, **options)
    return printed.stdout


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()) / "rankbits"
    clone(folder)
    subprocess.run(["make", "demo"], cwd=folder, check=True)
    readme = (folder / "README.md").read_text()
    sys.stdout.write(run_snippets(readme, folder, folder / ".venv" / "bin"))
    sys.stdout.write(f"the README runs as printed in {folder}\n")


if __name__ == "__main__":
    main()
