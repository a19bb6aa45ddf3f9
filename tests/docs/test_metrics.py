"""The documentation says of every metric what the metric says of itself."""

import re
from pathlib import Path

import numpy as np
import pytest

from rankbits.metrics import registered

ROOT = Path(__file__).parents[2]
EVALUATE = (ROOT / "docs" / "evaluate.md").read_text()
COLUMNS = "| Name | What it is | Cutoff | Options | Bounds | Nothing relevant |\n"


def rows():
    table = EVALUATE.partition(COLUMNS)[2].partition("\n\n")[0]
    lines = table.splitlines()[1:]
    return {line.split("|")[1].strip(" `"): line for line in lines}


def test_the_table_lists_every_metric_in_the_order_of_the_package():
    assert list(rows()) == [metric.name for metric in registered()]


@pytest.mark.parametrize("metric", registered(), ids=lambda metric: metric.name)
def test_a_row_of_the_table_is_what_the_metric_says(metric):
    summary, cutoffs, options, bounds, empty = (
        cell.strip() for cell in rows()[metric.name].split("|")[2:-1]
    )
    assert summary == metric.summary
    assert cutoffs.split(", ") == list(metric.cutoffs)
    groups = [re.findall(r"`(\w+)`", group) for group in options.split(";") if group]
    assert groups == [list(option.choices) for option in metric.options]
    assert bounds == ("yes" if metric.bounds else "")
    assert empty == ("undefined" if np.isnan(metric.value_if_empty) else "0")
