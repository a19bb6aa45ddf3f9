"""Pages: one self-contained HTML file each, nothing fetched, no script, light and dark."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rankbits._check import extra
from rankbits.evaluation import Audit, AuditRow
from rankbits.report import _words
from rankbits.report._curves import History, distance_plot, training_plot
from rankbits.report._plots import deviation_plot, range_plot, tie_plot
from rankbits.report._samples import Sample
from rankbits.report._svg import plain


def audit_page(audit: Audit) -> str:
    """The page of one audit.

    Parameters
    ----------
    audit : what `rankbits.evaluation.audit` returned
    """
    return _render(
        "audit.html.j2",
        audit=audit,
        headline=_words.headline(audit),
        printed=_words.printed_range(audit),
        figures=_figures(audit) | {"range": _both(range_plot, [audit], name="range")},
    )


def comparison_page(
    audits: Sequence[Audit],
    scores: Sequence[Mapping[str, float]],
    *,
    title: str,
    intro: str,
    detail: int = 0,
    history: History = (),
    samples: Mapping[str, Sequence[Sample]] | None = None,
) -> str:
    """The page of several codes of the same data: scores, ranges, distances, one audit in detail.

    Parameters
    ----------
    audits : one for each set of codes
    scores : the metrics of each audit's codes, by name, in the order of the columns
    title, intro : heading and first paragraph of the page
    detail : which audit is shown in detail
    history : the epochs of one of them, trained with a loss of 1 - AP
    samples : queries with their nearest pictures, by the sentence that says which queries they are
    """
    chosen = audits[detail]
    figures = _figures(chosen) | {
        "range": _both(range_plot, audits, name="range"),
        "distances": _both(distance_plot, audits, name="distances"),
    }
    if history:
        figures["training"] = _both(training_plot, history, name="training")
    return _render(
        "comparison.html.j2",
        title=title,
        intro=intro,
        audits=audits,
        scores=scores,
        audit=chosen,
        samples=samples or {},
        headline=_words.ranking(audits),
        ties=_words.comparison(audits),
        reversal=_words.reversal(audits),
        detail_headline=_words.headline(chosen),
        printed=_words.printed_range(chosen),
        figures=figures,
    )


def _figures(audit: Audit) -> dict[str, dict[str, str]]:
    """The figures of one audit in detail."""
    return {
        "deviation": _both(deviation_plot, (audit.ap, audit.ndcg), name="deviation"),
        "ties": _both(tie_plot, audit.ties, name="ties"),
    }


def _both(plot: Any, data: Any, name: str) -> dict[str, str]:
    """A figure for screens and paper, and one for phones; the page shows one of them."""
    return {
        "wide": plot(data, name=name),
        "narrow": plot(data, narrow=True, name=f"{name}-narrow"),
    }


def _render(template: str, **values: Any) -> str:
    """Fill a template; every value is escaped unless it is a figure of ours."""
    from rankbits import __version__

    jinja2 = extra("jinja2", "a page", "report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rankbits.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_finalize,
    )
    environment.filters |= {"signed": _words.signed, "numbers": _numbers, "by_key": _by_key}
    text: str = environment.get_template(template).render(
        **values, version=__version__, explanations=_words.EXPLANATIONS
    )
    return text


def _finalize(value: Any) -> Any:
    """Control characters have no place in HTML; markup of ours keeps its line breaks."""
    return plain(value) if type(value) is str else value


def _numbers(text: str) -> Any:
    """The same text with its scores in bold."""
    markupsafe = extra("markupsafe", "a page", "report")
    escaped = str(markupsafe.escape(plain(text)))
    return markupsafe.Markup(re.sub(r"\d+\.\d+", r"<b>\g<0></b>", escaped))


def _by_key(rows: Sequence[AuditRow]) -> dict[str, AuditRow]:
    return {row.key: row for row in rows}
