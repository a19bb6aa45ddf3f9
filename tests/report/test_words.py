import pytest

from rankbits.evaluation._audit_result import ROWS
from rankbits.report import _words


def test_every_row_has_a_name_and_an_explanation():
    assert list(ROWS) == list(_words.LABELS)
    assert set(ROWS) == set(_words.EXPLANATIONS)


def test_the_headline_states_the_score_and_the_range(scored):
    text = _words.headline(scored("x", 0.3881, 0.4119, 0.4472))
    assert "AP 0.412." in text
    assert "from 0.388 to 0.447." in text


def test_the_headline_of_a_narrow_range_has_the_digits_to_show_it(scored):
    assert "from 0.41170 to 0.41205" in _words.headline(scored("x", 0.4117, 0.4119, 0.41205))


def test_the_headline_without_a_range_says_so(scored):
    text = _words.headline(scored("x", 0.5, 0.5, 0.5))
    assert "0.500" in text
    assert "No order" in text


def test_what_tools_print_names_the_farthest_and_leaves_the_bounds_out(scored):
    text = _words.printed_range(scored("x", 0.1, 0.4, 0.9, sklearn=0.35, index=0.42))
    assert "print 0.350 to 0.420" in text
    assert "scikit-learn is farthest off, by −5.00 points" in text


def test_the_ranking_names_all_codes_the_best_first_with_digits_that_tell_them_apart(scored):
    audits = [scored(name, 0, ap, 1) for name, ap in (("a b", 0.25), ("c", 0.75), ("d", 0.2504))]
    assert _words.ranking(audits) == "“c” scores AP 0.75000, “d” 0.25040, “a b” 0.25000."
    assert _words.ranking(audits[:1]) == "“a b” scores AP 0.250."


def test_the_closest_overlapping_codes_are_compared(scored):
    audits = [
        scored("far", 0.1, 0.2, 0.3),
        scored("second", 0.50, 0.560, 0.61),
        scored("first", 0.54, 0.571, 0.60),
    ]
    text = _words.comparison(audits)
    assert text.startswith("“first” beats “second” by 1.10 points")
    assert text.endswith("by 11.00.")
    assert "still agree" in _words.reversal(audits)


def test_a_tool_that_reverses_the_order_is_named(scored):
    audits = [scored("a", 0.5, 0.57, 0.6, trec=0.561), scored("b", 0.5, 0.56, 0.6, trec=0.562)]
    assert "trec_eval prints 0.5610 for the first and 0.5620 for the second" in _words.reversal(
        audits
    )


def test_ranges_apart_leave_nothing_to_reverse(scored):
    audits = [scored("a", 0.5, 0.57, 0.6), scored("b", 0.2, 0.3, 0.4)]
    assert "No two ranges overlap" in _words.comparison(audits)
    assert _words.reversal(audits) == ""


@pytest.mark.parametrize(
    ("points", "text"), [(-0.004, "0.00"), (0.006, "+0.01"), (-12.345, "−12.35"), (0.0, "0.00")]
)
def test_points_have_a_sign_unless_they_round_to_nothing(points, text):
    assert _words.signed(points) == text
