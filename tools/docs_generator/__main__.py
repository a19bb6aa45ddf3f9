"""Write the generated documentation, or with --check say what is not up to date."""

import argparse
import sys

from docs_generator.pages import ROOT, differing_pages, write_pages


def main() -> int:
    """Exit 1 if --check finds a page that differs."""
    parser = argparse.ArgumentParser(prog="docs_generator", description=__doc__)
    parser.add_argument("--check", action="store_true", help="Change nothing.")
    is_check = parser.parse_args().check
    pages = differing_pages() if is_check else write_pages()
    for path in pages:
        print(path.relative_to(ROOT), "is out of date; run make docs-tables" if is_check else "")
    return 1 if is_check and pages else 0


sys.exit(main())
