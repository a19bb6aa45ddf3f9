"""Pages and figures that show what an evaluation found.

Needs matplotlib and jinja2: the extra `report`.
"""

from rankbits.report._compress import compress_page
from rankbits.report._curves import distance_plot, training_plot
from rankbits.report._dispersion import code_use_plot, trade_plot
from rankbits.report._exact import lgap_plot, orthodrome_plot, tied_list_plot
from rankbits.report._frontier import bytes_plot, frontier, pool_plot, time_plot
from rankbits.report._page import audit_page, comparison_page
from rankbits.report._panels import CurvePanel, curves_plot
from rankbits.report._plots import deviation_plot, range_plot, tie_plot
from rankbits.report._quality import quality_plot
from rankbits.report._results_page import (
    cells_csv,
    latex_tables,
    markdown_tables,
    results_page,
)
from rankbits.report._samples import Sample, SamplePictures, picture, samples
from rankbits.report._search import recall_plot
from rankbits.report._sections import Figure, Provenance, ScoreRow, ScoreTable, Section
from rankbits.report._svg import require_extra
from rankbits.report._ties import TieRange, tie_range_plot

__all__ = [
    "CurvePanel",
    "Figure",
    "Provenance",
    "Sample",
    "SamplePictures",
    "ScoreRow",
    "ScoreTable",
    "Section",
    "TieRange",
    "audit_page",
    "bytes_plot",
    "cells_csv",
    "code_use_plot",
    "comparison_page",
    "compress_page",
    "curves_plot",
    "deviation_plot",
    "distance_plot",
    "frontier",
    "latex_tables",
    "lgap_plot",
    "markdown_tables",
    "orthodrome_plot",
    "picture",
    "pool_plot",
    "quality_plot",
    "range_plot",
    "recall_plot",
    "require_extra",
    "results_page",
    "samples",
    "tie_plot",
    "tie_range_plot",
    "tied_list_plot",
    "time_plot",
    "trade_plot",
    "training_plot",
]
