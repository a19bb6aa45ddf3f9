"""Every link between pages leads to a page, and every anchor to a heading of it."""

import re
from pathlib import Path

import pytest
from markdown.extensions.toc import slugify, unique

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
DIRECTIVE = re.compile(r"^::: (\S+)$", re.MULTILINE)


def prose_of(page):
    """The text without blocks of code, in which brackets are no links and hashes no headings."""
    return FENCE.sub("", page.read_text())


def links_of(page):
    """Targets of all links of a page that stay within the repository."""
    return [link for link in LINK.findall(prose_of(page)) if "://" not in link]


def anchors_of(page):
    """Anchors as mkdocs makes them of headings, and as mkdocstrings makes them of names."""
    text, used = prose_of(page), set()
    for heading in HEADING.findall(text):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        unique(slugify(words, "-"), used)
    return used | set(DIRECTIVE.findall(text))


def broken_links(page):
    """Links of a page to files that do not exist, and to headings that their page does not have."""
    broken = []
    for link in links_of(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page):
    assert broken_links(page) == []


def test_a_wrong_page_and_a_wrong_anchor_are_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A `b` c\n[1](#a-b-c) [2](#a-c) [3](no.md) [4](page.md#a-b-c) [5](x://y)\n")
    assert broken_links(page) == ["#a-c", "no.md"]


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_front_pages_lead_to_every_page_of_the_documentation(page):
    linked = {(ROOT / page).parent.joinpath(link).resolve() for link in links_of(ROOT / page)}
    missing = {path for path in DOCS.glob("*.md") if path.name != "index.md"} - linked
    assert not missing, sorted(path.name for path in missing)
    assert DOCS / "reference" / "index.md" in linked


def test_the_site_has_every_page_in_its_navigation():
    text = (ROOT / "mkdocs.yml").read_text()
    listed = set(re.findall(r"[\w/]+\.md", text.split("\nnav:")[1]))
    assert listed == {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_extras_are_installed_from_the_clone(page):
    """There is no package of this name to download: `pip install '.[interop]'` is what works."""
    assert re.findall(r"pip install '?rankbits.*", page.read_text()) == []
