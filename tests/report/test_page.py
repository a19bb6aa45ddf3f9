import html
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest

from rankbits.errors import MissingExtraError
from rankbits.report import Sample, audit_page, comparison_page, require_extra
from rankbits.report._samples import Neighbour, picture
from rankbits.report._svg import COLOURS
from rankbits.report._words import EXPLANATIONS, headline, signed

LOADS = {
    "src",
    "href",
    "xlink:href",
    "srcset",
    "poster",
    "data",
    "action",
    "background",
    "manifest",
}
VOID = {"meta", "br", "img"}
PICTURE = "data:image/png;base64,"


class Page(HTMLParser):
    """Tags, ids, what is loaded, the text, and whether every element is closed in order."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.loads, self.words, self.open = set(), [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.loads += [value for name, value in attributes if name in LOADS]
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def several(audits):
    scores = [{"AP": audit.ap.expected, "P@r2": 0.1234} for audit in audits]
    return comparison_page(
        audits,
        scores,
        title="A title",
        intro="An intro.",
        detail=len(audits) - 1,
        history=[{"epoch": n, "loss": 1 / n, "score": 0.5} for n in (1, 2)],
        samples={f"Queries of {audits[-1].name}": [sample(audits[-1].name)]},
    )


def sample(name):
    """A query with two neighbours, under a name and labels from outside."""
    found = [
        Neighbour(n, picture(np.full((2, 2), n / 2)), name, 3 + n, is_relevant=n == 0)
        for n in (0, 1)
    ]
    return Sample(0, picture(np.eye(2)), name, {name: found})


PAGES = {
    "audit": audit_page,
    "comparison": lambda audit: several([replace(audit, name="other"), audit]),
}


@pytest.fixture(scope="session")
def text_of(small):
    """Pages of `small`, each made once."""
    return cache(lambda page: page(small))


every_page = pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)


@every_page
def test_a_page_is_the_same_text_each_time(small, text_of, page):
    assert page(small) == text_of(page)


@every_page
def test_a_page_loads_nothing_and_runs_nothing(text_of, page):
    text = text_of(page)
    found = Page(text)
    assert found.open == []
    assert all(target.startswith(("#", PICTURE)) for target in found.loads)
    assert not found.tags & {"script", "link", "iframe", "object", "embed", "base", "image"}
    assert not re.search(r"@import|url\((?!#)|javascript:|\son[a-z]+=", text)
    outside = set(re.findall(r"https?://[^\"'<\s]+", text))
    assert outside <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


@every_page
def test_ids_are_unique_and_every_link_within_the_page_has_its_end(text_of, page):
    found = Page(text_of(page))
    assert len(found.ids) == len(set(found.ids))
    links = {target[1:] for target in found.loads if not target.startswith(PICTURE)}
    assert links <= set(found.ids)


@every_page
def test_every_number_of_the_audit_is_on_the_page(small, text_of, page):
    text = Page(text_of(page)).text
    wanted = [f"{metric.expected:.4f}" for metric in (small.ap, small.ndcg)]
    for row in small.ap.rows + small.ndcg.rows:
        wanted += [row.title, row.who, f"{row.value:.4f}", signed(row.points)]
        wanted += [f"± {row.deviation:.4f}"] if row.deviation is not None else []
    wanted += [f"{row.largest_points:.2f}" for row in small.ap.rows]
    for row in small.cutoffs:
        wanted += [row.who, f"{row.expected:.4f}", f"{row.index_order:.4f}"]
        wanted += [signed(row.points), signed(row.order_points)]
    wanted += [EXPLANATIONS[row.key] for row in small.ap.rows]
    wanted += [*small.conventions, *small.conventions.values()]
    wanted += [str(small.n_bits), str(small.n_queries), str(small.n_items), small.name]
    assert [word for word in wanted if word not in text] == []


@every_page
def test_a_row_of_the_table_has_both_metrics_in_their_columns(small, text_of, page):
    text = html.unescape(text_of(page))
    ndcg = {row.key: row for row in small.ndcg.rows}
    for row in small.ap.rows:
        line = text[text.index(f"<tr><th>{row.title}<") :]
        shown = [
            re.sub(r"<small>.*?</small>", "", cell)
            for cell in re.findall(r"<td>(.*?)</td>", line[: line.index("</tr>")], re.DOTALL)
        ]
        mine = [f"{row.value:.4f}", signed(row.points), f"{row.largest_points:.2f}"]
        other = ndcg.get(row.key)
        theirs = [f"{other.value:.4f}", signed(other.points)] if other else ["–", "–"]
        assert shown == mine + theirs


@every_page
def test_names_cannot_break_out_of_their_place(small, page):
    name = "<script>alert(1)</script>\"'&amp; {{ 7 * 7 }} <b>\x00\x07"
    text = page(replace(small, name=name))
    assert "<script" not in text
    assert "\x00" not in text
    assert html.escape("<script>alert(1)</script>") in text
    assert "{{ 7 * 7 }}" in text
    assert "script" not in Page(text).tags
    assert Page(text).open == []


def test_the_headline_is_the_heading(small, text_of):
    text = text_of(audit_page)
    heading = re.sub(r"</?b>", "", re.search("<h1>(.*?)</h1>", text)[1])
    assert html.unescape(heading) == headline(small)
    assert re.search(rf"<b>{small.ap.expected:.3f}</b>", text)


def test_a_comparison_shows_every_score_and_the_chosen_detail(scored):
    audits = [scored("first", 0.5, 0.57, 0.6), scored("second", 0.5, 0.56, 0.6)]
    found = Page(several(audits)).text
    for word in ("A title", "An intro.", "first", "second", "0.5700", "0.5600", "0.1234", "P@r2"):
        assert word in found
    assert "One of them in detail: second" in found
    assert "“first” beats “second” by 1.00 points" in found
    assert "“first” scores AP" in found


def test_a_comparison_has_the_parts_of_learned_codes(small, text_of):
    text = text_of(PAGES["comparison"])
    for figure in ("Range of average", "Distances of relevant", "Average precision of training"):
        assert len(re.findall(f'<svg role="img" aria-label="{figure}', text)) == 2
    words = Page(text).text
    assert "How training went" in words
    assert f"Queries of {small.name}" in words
    shown = re.findall(r'<li class="(\w+)"><span><img src="([^"]+)" alt="([^"]+)">', text)
    near, far = sample(small.name).nearest[small.name]
    assert shown == [
        ("right", near.picture, "small codes, distance 3, relevant"),
        ("wrong", far.picture, "small codes, distance 4, irrelevant"),
    ]


def test_without_training_and_pictures_their_parts_are_left_out(small):
    text = comparison_page([small], [{"AP": 0.5}], title="A title", intro="An intro.")
    words = Page(text).text
    assert "How far relevant and irrelevant items lie" in words
    assert "How training went" not in words
    assert "nearest pictures" not in words
    assert "<img" not in text


def test_skipped_queries_are_shown_only_where_there_are_some(small, text_of):
    assert "skipped" not in Page(text_of(audit_page)).text
    assert "17 queries skipped" in reverse_facts(audit_page(replace(small, n_skipped=17)))


def reverse_facts(text):
    """Facts are stored with the label first and shown with the number first."""
    return " ".join(f"{b} {a}" for a, b in re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", text))


def test_without_cutoffs_the_page_leaves_their_table_out(small, text_of):
    assert "AP at k" in text_of(audit_page)
    assert "AP at k" not in audit_page(replace(small, cutoffs=()))


def test_the_style_has_every_colour_of_the_figures_for_light_and_for_dark():
    style = (files("rankbits.report") / "templates" / "style.css").read_text()
    light, dark = style.split("prefers-color-scheme: dark")
    for token, colour in COLOURS.items():
        assert f"--{token}: {colour};" in light
        assert re.search(rf"--{token}: #[0-9a-f]{{6}};", dark)


@pytest.mark.parametrize("missing", ["matplotlib", "jinja2"])
def test_a_missing_extra_is_named(hide_package, missing):
    hide_package(missing)
    with pytest.raises(MissingExtraError, match=rf"needs {missing}; .*rankbits\[report\]"):
        require_extra()
