"""Pages and figures that show what an evaluation found.

Needs matplotlib and jinja2: the extra `report`.
"""

from rankbits.report._compress import compress_page
from rankbits.report._curves import distance_plot, training_plot
from rankbits.report._dispersion import code_use_plot, trade_plot
from rankbits.report._frontier import bytes_plot, frontier, pool_plot, time_plot
from rankbits.report._page import audit_page, comparison_page
from rankbits.report._plots import deviation_plot, range_plot, tie_plot
from rankbits.report._quality import quality_plot
from rankbits.report._samples import Sample, SamplePictures, picture, samples
from rankbits.report._search import recall_plot
from rankbits.report._svg import require_extra

__all__ = [
    "Sample",
    "SamplePictures",
    "audit_page",
    "bytes_plot",
    "code_use_plot",
    "comparison_page",
    "compress_page",
    "deviation_plot",
    "distance_plot",
    "frontier",
    "picture",
    "pool_plot",
    "quality_plot",
    "range_plot",
    "recall_plot",
    "require_extra",
    "samples",
    "tie_plot",
    "time_plot",
    "trade_plot",
    "training_plot",
]
