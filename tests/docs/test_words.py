"""The pages use the words of the glossary, and American spelling."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
PAGES = [
    ROOT / "README.md",
    *sorted(ROOT.glob("CONTRIBUTING.md")),
    *sorted(set((ROOT / "docs").glob("*.md")) - {GLOSSARY}),
    *sorted((ROOT / "docs" / "contributing").glob("*.md")),
]
BRITISH = re.compile(
    r"\b\w*(neighbour|labell|behaviour|favour|colour|grey|centre|optimis(e|ing|ation)|normalis"
    r"|regularis|maximis|minimis|quantis|generalis|initialis|summaris|recognis|organis)\w*",
    re.IGNORECASE,
)
NAMES = (  # of the API, keys of its results, titles
    "affinity.neighbours",
    "--neighbours",
    "unlabelled=",
    "--unlabelled",
    "LabelledPerClass",
    "`normalise`",
    "Learning hash codes with listwise supervision",  # the title of a paper
)
FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
SOURCE = re.compile(r"^\| Source \|.*$", re.MULTILINE)  # titles of papers


def replaced_words():
    """The words of the last column of the glossary."""
    rows = re.findall(r"^\|.*\| ([^|]*) \|$", GLOSSARY.read_text(), re.MULTILINE)[1:]
    return [word for row in rows for word in row.split(", ")]


def prose_of(text):
    """The text without blocks of code, titles of papers and names of the API."""
    text = SOURCE.sub("", FENCE.sub("", text))
    for name in NAMES:
        text = text.replace(name, "")
    return " ".join(text.split())


def british_words(text):
    return [match[0] for match in BRITISH.finditer(prose_of(text))]


def other_words(text):
    words = "|".join(map(re.escape, replaced_words()))
    return re.findall(rf"\b(?:{words})s?\b", prose_of(text), re.IGNORECASE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_american_spelling(page):
    assert british_words(page.read_text()) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_uses_the_words_of_the_glossary(page):
    assert other_words(page.read_text()) == []


def test_wrong_words_are_noticed_and_names_are_not():
    text = "A Neighbour of `affinity.neighbours` in\ngrey.\n```python\ncentre = 0\n```\n"
    assert british_words(text) == ["Neighbour", "grey"]
    assert other_words("Hash\ncodes of a shortlist; codes of a pool.") == [
        "Hash codes",
        "shortlist",
    ]


def test_the_glossary_says_what_each_word_replaces():
    assert "hash code" in replaced_words()
    assert len(replaced_words()) == len(set(replaced_words())) >= 19
