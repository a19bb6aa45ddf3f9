"""Pages and figures that show what an evaluation found.

Needs matplotlib and jinja2: the extra `report`.
"""

from rankbits.report._page import audit_page, comparison_page
from rankbits.report._plots import deviation_plot, range_plot, tie_plot
from rankbits.report._svg import require_extra

__all__ = [
    "audit_page",
    "comparison_page",
    "deviation_plot",
    "range_plot",
    "require_extra",
    "tie_plot",
]
