"""Exhibits: functions of result files, whose numbers are those of the files."""

import html.parser
import json
import re

import numpy as np
import pytest

from made_results import made_result, write_part, write_result
from rankbits import papers
from rankbits.benchmark import Score, load_results
from rankbits.errors import FileFormatError, InputError
from rankbits.papers import _exact
from rankbits.report import ScoreRow, ScoreTable

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
TALR = ["talr-fig1", "talr-fig3", "talr-table1", "talr-table2", "talr-table3"]
RSH = ["rsh-fig2", "rsh-fig3", "rsh-fig4", "rsh-fig5"]
MLGAP = ["mlgap-fig1", "mlgap-fig5", "mlgap-fig6", "mlgap-table1", "mlgap-fig8"]
WRITTEN = ("talr-table1", "rsh-fig3", "mlgap-table1")
IDS = [*TALR, *RSH, "lwh-fig1", "lwh-fig2", *MLGAP]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Results of some exhibits, optional parts too, and the numbers of one without runs."""
    path = tmp_path_factory.mktemp("results")
    for name in WRITTEN:
        for part in papers.exhibit(name).parts:
            write_part(path, part)
    papers.run([papers.exhibit("talr-fig1")], path)
    papers.write_report(path, ("html", "markdown", "latex", "csv"))
    return path


class Tables(html.parser.HTMLParser):
    """The cells of the tables of a section: [label, *(value, spread, paper)] for each row."""

    def __init__(self, text, section):
        super().__init__()
        self.rows, self.section, self.inside = [], section, False
        self.is_cell = self.is_small = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag == "section":
            self.inside = dict(attributes)["id"] == self.section
        if self.inside and tag == "tr":
            self.rows.append([])
        if self.inside and tag in ("th", "td"):
            self.rows[-1].append({"value": "", "small": []})
            self.is_cell = True
        self.is_small = self.is_small or tag == "small"

    def handle_endtag(self, tag):
        self.is_small = self.is_small and tag != "small"
        self.is_cell = self.is_cell and tag not in ("th", "td")

    def handle_data(self, data):
        if self.inside and self.is_cell and data.strip():
            if self.is_small:
                self.rows[-1][-1]["small"].append(data.strip())
            else:
                self.rows[-1][-1]["value"] += data.strip()


def test_exhibits_are_shown_that_the_folder_has_runs_of(folder):
    assert [exhibit.id for exhibit in papers.exhibits()] == IDS
    page = (folder / "index.html").read_text()
    shared = ["talr-fig1", "talr-fig3", "rsh-fig5", "mlgap-fig8"]  # the same runs serve these
    expected = [name for name in IDS if name in (*WRITTEN, *shared)]
    assert re.findall(r'<section id="([^"]+)"', page) == expected
    assert page.count("<svg") == 2 * 5  # five figures, each for wide and narrow screens
    with pytest.raises(InputError, match="id must be one of talr-fig1"):
        papers.exhibit("talr-fig9")


@pytest.mark.parametrize("name", ["talr-table1", "talr-fig3", "rsh-fig3", "mlgap-table1"])
def test_numbers_on_the_page_are_those_of_the_files(folder, name):
    page, results = (folder / "index.html").read_text(), load_results(folder)
    rows = Tables(page, name).rows
    exhibit = papers.exhibit(name)
    n_compared = 0
    for part in exhibit.parts:
        for method in part.methods:
            for metric in part.metrics:
                expected = []
                for bits in part.bits:
                    files = [
                        json.loads(file.read_text())
                        for file in folder.glob(f"{part.protocol}-{method}-{bits}-*.json")
                    ]
                    values = [row["metrics"][metric]["mean"] for row in files]
                    assert len(values) == 3
                    expected.append((f"{np.mean(values):.4f}", f"± {np.std(values, ddof=1):.4f}"))
                found = [[(cell["value"], *cell["small"][:1]) for cell in row[1:]] for row in rows]
                assert expected in found, (part.protocol, method, metric)
                n_compared += 1
    assert n_compared >= 4
    assert results.find(exhibit.parts[0].protocol, exhibit.parts[0].methods[0], 99) is None


def test_times_are_the_fastest_of_the_files_and_claims_name_every_method(folder, tmp_path):
    page = (folder / "index.html").read_text()
    rows = [[cell["value"] for cell in row] for row in Tables(page, "rsh-fig5").rows]
    files = [json.loads(file.read_text()) for file in folder.glob("rsh-corel5k-wtah-8-*.json")]
    fastest = min(result["seconds"]["encode"] for result in files)
    assert next(row for row in rows if row[0] == "WTAH")[1] == f"{1000 * fastest:,.0f}"
    seconds = {"rsh": 0.1, "ssh": 0.1, "sh": 0.2, "cmh": 0.3, "wtah": 0.3}
    for wtah, words in ((0.3, ["it is so", "it is so"]), (0.15, ["it is so", "it is not so"])):
        for method, value in (seconds | {"wtah": wtah}).items():
            result = made_result("rsh-corel5k", method, 8)
            result["seconds"]["encode"] = value
            write_result(tmp_path, result)
        (section,) = [one for one in papers.sections(tmp_path) if one.id == "rsh-fig5"]
        assert [re.search(r"Here: (.*)\.", text)[1] for text in section.sentences] == words


def test_the_paper_stands_beside_ours_and_only_the_best_is_bold(folder):
    page = (folder / "index.html").read_text()
    rows = {row[0]["value"]: row for row in Tables(page, "talr-table1").rows[:10] if row}
    assert [cell["small"][-1] for cell in rows["BRE"][1:]] == [
        "paper 0.361",
        "paper 0.448",
        "paper 0.502",
        "paper 0.533",
    ]
    assert rows["TALR-AP (arXiv text)"][4]["value"] == "0.805"
    section = page[page.index('<section id="talr-table1"') :]
    table = section[: section.index("</table>")]
    for bits in (12, 24, 32, 48):
        cells = re.findall(rf'data-column="{bits} bits">(?:<b>)?([0-9.]+)(</b>)?<small>±', table)
        best = max(float(value) for value, _ in cells)
        assert [float(value) for value, bold in cells if bold] == [best]
        assert len(cells) == 8


def test_values_of_other_data_stand_below_ours_not_beside_them(folder):
    (section,) = [one for one in papers.sections(folder) if one.id == "talr-table1"]
    tables = {table.title: table for table in section.tables}
    corel = tables["AP_T, Corel5k in place of NUS-WIDE"]
    assert not any(row.papers for row in corel.rows)
    published = {row.label: row.scores[0].mean for row in corel.rows if row.is_published}
    assert published["BRE"] == 0.561
    assert "above the paper's" not in corel.sentence
    assert "above the paper's" in tables["AP_T, NUS-WIDE"].sentence
    assert tables["AP@5000, NUS-WIDE"].rows[4].papers == (0.758, 0.793, 0.818, 0.830)  # DPSH


def test_the_same_files_give_the_same_bytes(folder, tmp_path):
    for file in sorted(folder.glob("*.json"), reverse=True):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    formats = ("csv", "latex", "html", "markdown")
    for format_name, path in papers.write_report(tmp_path, formats).items():
        other = folder / path.rpartition("/")[2]
        assert other.read_bytes() == (tmp_path / other.name).read_bytes(), format_name


def test_the_page_is_one_file_without_scripts_or_links_to_elsewhere(folder):
    page = (folder / "index.html").read_text()
    assert "<script" not in page
    assert not re.search(r'(src|href)="(?!#)', page)
    assert not re.search(r"url\(['\"]?http|@import", page)


def test_a_result_of_another_split_is_refused_by_the_report(folder, tmp_path):
    one = made_result("cifar10-s1", "itq", 12)
    write_result(tmp_path, one)
    other = made_result("cifar10-s1", "lsh", 12)
    other["split"]["hash"] = "a" * 64
    file = write_result(tmp_path, other)
    with pytest.raises(InputError, match=f"{file.name} cannot stand beside"):
        papers.write_report(tmp_path)
    assert not (tmp_path / "index.html").exists()


def test_provenance_names_splits_versions_parameters_and_seconds(folder):
    page = (folder / "index.html").read_text()
    section = page[
        page.index('<section id="mlgap-table1"') : page.index('<section id="mlgap-fig8"')
    ]
    for words in (
        "0: 000000000000, 1: 000000000000, 2: 000000000000",
        "10 queries, 100 items, 20 training rows",
        "rankbits 0.1.0, numpy 2.0, processors 2",
        "dsh: {&#34;epochs&#34;: 30, &#34;posterior&#34;: 0}",
        "StandardParts",
        '<td data-column="fit">1.50',
    ):
        assert words in section, words


def test_sentences_count_what_agrees(tmp_path):
    values = {"bre": 0.3, "fasthash": 0.6, "machash": 0.55, "talr-ap": 0.9}
    for method, value in values.items():
        metrics = {"AP": value, "AP.worst": value, "AP.best": value}
        write_result(tmp_path, made_result("cifar10-s1", method, 32, metrics=metrics))
    sections = {section.id: section for section in papers.sections(tmp_path)}
    (table,) = sections["talr-table1"].tables
    assert "highest AP_T is that of TALR-AP at 32 bits (0.9000)" in table.sentence
    assert "Of 6 pairs of methods at one length, 6 stand in the paper's order." in table.sentence
    assert "1 of 4 values lie above the paper's" in table.sentence
    ranges = " ".join(sections["talr-fig3"].sentences)
    assert (
        "At 32 bits a range is 0.0900 wide in the mean, and 1 of 6 pairs of methods overlap"
        in ranges
    )


def test_an_order_that_differs_is_said(tmp_path):
    for method, value in {"bre": 0.9, "fasthash": 0.6}.items():
        write_result(tmp_path, made_result("cifar10-s1", method, 32, metrics={"AP": value}))
    (section,) = [one for one in papers.sections(tmp_path) if one.id == "talr-table1"]
    assert "0 stand in the paper's order; here BRE is above FastHash at 1 length." in (
        section.tables[0].sentence
    )


def test_runs_that_no_exhibit_shows_have_a_section_of_their_protocol(tmp_path):
    write_result(tmp_path, made_result("clinc150", "itq", 16))
    write_result(tmp_path, made_result("cifar10-s1", "their-codes", 12, codes="x"))
    sections = {section.id: section for section in papers.sections(tmp_path)}
    assert set(sections) == {"protocol-clinc150", "protocol-cifar10-s1"}
    labels = [row.label for row in sections["protocol-cifar10-s1"].tables[0].rows]
    assert labels == ["their-codes (given codes)"]


def test_a_folder_without_results_is_refused_and_a_damaged_exact_file_named(tmp_path):
    with pytest.raises(InputError, match="folder must hold results"):
        papers.write_report(tmp_path)
    (tmp_path / "exact-talr-fig1.json").write_text('{"id": "talr-fig1"}')
    with pytest.raises(FileFormatError, match=r"exact-talr-fig1.json does not hold the numbers"):
        papers.write_report(tmp_path)


def test_markdown_latex_and_csv_have_the_numbers_of_the_page(folder):
    cell = load_results(folder).find("cifar10-s1", "bre", 12)
    score = cell.score("AP")
    shown = f"{score.mean:.4f}"
    markdown, latex = (folder / "tables.md").read_text(), (folder / "tables.tex").read_text()
    assert re.search(
        rf"\| BRE \| (\*\*)?{shown}(\*\*)? ± {score.sd:.4f} \(paper 0.361\) \|", markdown
    )
    assert re.search(
        rf"BRE & (\\textbf{{)?{shown}}}? \$\\pm\$ {score.sd:.4f} \(paper 0.361\) &", latex
    )
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") > 10
    header, *lines = (folder / "cells.csv").read_text().splitlines()
    assert header.startswith("file,protocol,label,method,bits,split_seed,seed,version,params")
    assert len(lines) == len(list(folder.glob("[!.]*.json"))) - 1
    (row,) = [line for line in lines if line.startswith(cell.runs[1].file)]
    assert repr(cell.runs[1].result["metrics"]["AP"]["mean"]) in row


def test_exact_numbers_are_those_of_the_papers():
    toy, second = _exact.tied_list()["lists"]
    assert round(toy["worst"], 2) == 0.38  # arXiv:1705.08562, Figure 1
    assert round(second["worst"], 4) == 0.3544  # mLGAP, Figure 2
    for row in (toy, second):
        assert row["best"] == 1
        assert row["exact"] == pytest.approx(row["mean_of_orders"], abs=1e-12)
    lgap = _exact.lgap_by_hand()
    assert round(lgap["metric"], 4) == round(lgap["by_hand"], 4) == 0.5424  # its Equation 15


def test_orthodromes_are_great_circles_with_perfect_rankings():
    codes = _exact.orthodrome_codes()
    steps = (codes != np.roll(codes, 1, axis=0)).sum(axis=1)
    assert steps.tolist() == [1] * 24
    assert ((codes != np.roll(codes, 12, axis=0)).sum(axis=1) == 12).all()  # opposite codes
    even, uneven = _exact.orthodromes()["circles"]
    assert (even["used"], even["is_perfect"]) == (16, True)
    assert uneven["used"] < 16
    assert uneven["is_perfect"]
    crowded = _exact._judged_circle([0, 0, 1, 1] + [-1] * 20)
    assert not crowded["is_perfect"]


def test_scores_that_print_alike_are_marked_alike():
    scores = [0.48219, 0.48217, 0.4821]
    rows = tuple(ScoreRow(str(score), (Score(score, None, 1),)) for score in scores)
    table = ScoreTable("NDCG_T", ("8 bits",), rows)
    printed = [table.shown(row, 0)[0] for row in rows]
    assert printed == ["0.4822", "0.4822", "0.4821"]
    assert [table.is_best(row, 0) for row in rows] == [True, True, False]


def test_a_table_says_how_many_seeds_its_scores_have(tmp_path):
    for method, n_seeds in (("bre", 3), ("fasthash", 2), ("dpsh", 1)):
        for bits in (12, 24):
            for seed in range(n_seeds + (method == "fasthash" and bits == 24)):
                write_result(tmp_path, made_result("cifar10-s1", method, bits, seed))
    papers.write_report(tmp_path, ("markdown",))
    text = (tmp_path / "tables.md").read_text()
    assert "Seeds: 3, but FastHash 2 to 3 and DPSH 1." in text
