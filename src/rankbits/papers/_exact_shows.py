"""Sections of exhibits without runs: functions of the numbers in their files."""

from rankbits.benchmark import Score
from rankbits.papers._exhibit import View
from rankbits.papers._sections import build_section
from rankbits.papers._shows import both
from rankbits.report import (
    ScoreRow,
    ScoreTable,
    Section,
    lgap_plot,
    orthodrome_plot,
    tied_list_plot,
)


def show_tied_list(view: View) -> Section:
    """The toy list in its best and worst order, and the expectation over all of them."""
    first = view.values["lists"][0]
    n, relevant = first["items"], first["relevant"]
    orders = {
        "optimistic": ([True] * relevant + [False] * (n - relevant), first["best"]),
        "all orders, in the mean": ([None] * n, first["exact"]),
        "pessimistic": ([False] * (n - relevant) + [True] * relevant, first["worst"]),
    }
    sentences = [
        f"With all of {row['items']} items tied, {row['relevant']} of them relevant, a tie-breaker "
        f"can print any AP from {row['worst']:.4f} to {row['best']:.4f}; the expectation is "
        f"{row['exact']:.4f}, and the mean over all {row['orders']} orders is "
        f"{row['mean_of_orders']:.4f}."
        for row in view.values["lists"]
    ]
    caption = "One list, all at one distance: what AP prints depends on the order that is chosen."
    figure = both(tied_list_plot, orders, view.name, caption)
    columns = ("worst order", "expectation", "mean of all orders", "best order")
    keys = ("worst", "exact", "mean_of_orders", "best")
    rows = tuple(
        ScoreRow(
            f"{row['items']} items, {row['relevant']} relevant",
            tuple(Score(row[key], None, 1) for key in keys),
        )
        for row in view.values["lists"]
    )
    table = ScoreTable("AP of a tied list", columns, rows, has_best=False)
    return build_section(view, sentences, [figure], [table])


def show_orthodromes(view: View) -> Section:
    """The two circles."""
    circles = view.values["circles"]
    sentences = [
        f"With {circle['title']}, {circle['used']} of {len(circle['classes'])} codes can be used, "
        f"{circle['share']:.4f} of them; every class is {'' if circle['is_perfect'] else 'not '}"
        "nearer to itself than to any other."
        for circle in circles
    ]
    sentences.append(f"The paper's bound is {view.values['bound']:.4f}.")
    caption = (
        "Codes of a great circle of the 12-bit space; neighbours differ in one bit. Codes of a "
        "class have one colour and marker; open codes must stay unused, or AP would not be 1."
    )
    data = {circle["title"]: circle["classes"] for circle in circles}
    return build_section(view, sentences, [both(orthodrome_plot, data, view.name, caption)])


def show_lgap(view: View) -> Section:
    """The three balls and their factors."""
    balls, by_hand = view.values["balls"], view.values["by_hand"]
    terms = " + ".join(f"{ball['precision']:.4f} × {ball['evenness']:.4f}" for ball in balls)
    sentences = [
        f"LGAP@2 = ({terms}) / {len(balls)} = {by_hand:.4f}; rankbits.metrics.lgap gives "
        f"{view.values['metric']:.4f}."
    ]
    caption = (
        "Codes within each radius of a query of 4 bits, and the items on them. P is the share of "
        "relevant items, φ the share of the rectangle below the dotted line that is filled."
    )
    return build_section(view, sentences, [both(lgap_plot, balls, view.name, caption)])
