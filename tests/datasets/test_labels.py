import numpy as np
import pytest

from rankbits.datasets import digits, load_judgements, load_labels
from rankbits.errors import FileFormatError, InputError


@pytest.mark.parametrize(
    "labels", [np.array([3, 1, 3]), np.array(["cat", "dog"]), np.eye(3), np.eye(2, dtype=bool)]
)
def test_labels_come_back_as_written(tmp_path, labels):
    np.save(tmp_path / "y.npy", labels)
    np.testing.assert_array_equal(load_labels(tmp_path / "y.npy"), labels)


@pytest.mark.parametrize(
    "labels", [np.array([0.5, 1.0]), np.zeros((2, 2, 2), int), np.array(3), np.zeros(0, int)]
)
def test_what_is_no_label_is_refused(tmp_path, labels):
    np.save(tmp_path / "y.npy", labels)
    with pytest.raises(InputError, match=r"y.npy must hold classes.*with n > 0; got"):
        load_labels(tmp_path / "y.npy")


def test_judgements_have_three_columns_or_the_four_of_a_qrels_file(tmp_path):
    (tmp_path / "three.tsv").write_text("0\t5\t1\n\n2\t0\t3\n")
    (tmp_path / "four.qrels").write_text("0 0 5 1\n2 Q0 0 3")
    np.save(tmp_path / "rows.npy", np.array([[0, 5, 1], [2, 0, 3]], np.int32))
    for name in ("three.tsv", "four.qrels", "rows.npy"):
        found = load_judgements(tmp_path / name)
        assert found.dtype == np.int64
        assert found.tolist() == [[0, 5, 1], [2, 0, 3]]


def test_a_file_without_judgements_has_no_rows(tmp_path):
    (tmp_path / "none.tsv").write_text("")
    assert load_judgements(tmp_path / "none.tsv").shape == (0, 3)


@pytest.mark.parametrize("line", ["0 1", "0 1 2 3 4", "0 1 1.5", "0 1 9999999999999999999"])
def test_a_line_that_is_no_judgement_is_named(tmp_path, line):
    (tmp_path / "bad.tsv").write_text(f"0 1 1\n{line}\n")
    with pytest.raises(FileFormatError, match=r"bad.tsv, line 2 must be query, item, level"):
        load_judgements(tmp_path / "bad.tsv")


@pytest.mark.parametrize("line", ["a 1 2", "0 d7 2", "q1 0 d7 2", "0 9999999999999999999 1"])
def test_ids_that_are_no_row_numbers_are_refused_with_the_way_to_use_them(tmp_path, line):
    (tmp_path / "ids.tsv").write_text(f"0 1 1\n{line}\n")
    with pytest.raises(FileFormatError, match=r"line 2 must name .* by their row .*--query-ids"):
        load_judgements(tmp_path / "ids.tsv")


def test_a_negative_level_in_a_text_file_is_level_0(tmp_path):
    (tmp_path / "web.qrels").write_text("0 0 5 -2\n")
    assert load_judgements(tmp_path / "web.qrels").tolist() == [[0, 5, 0]]


def test_judgements_of_another_shape_or_none_at_all_are_refused(tmp_path):
    np.save(tmp_path / "rows.npy", np.zeros((2, 2), int))
    with pytest.raises(InputError, match=r"integers of shape \(n, 3\)"):
        load_judgements(tmp_path / "rows.npy")
    with pytest.raises(InputError, match=r"there is no"):
        load_judgements(tmp_path / "absent.tsv")


def test_digits_are_split_without_overlap_and_by_seed():
    split = digits(n_queries=100, random_state=3)
    assert split.query_x.shape == (100, 64)
    assert len(split.database_y) == 1697
    rows = np.concatenate([split.query_x, split.database_x])
    assert len(np.unique(rows, axis=0)) == 1797
    np.testing.assert_array_equal(split.query_y, digits(100, random_state=3).query_y)
    assert not np.array_equal(split.query_y, digits(100, random_state=4).query_y)
    with pytest.raises(InputError, match=r"n_queries must be an integer from 1 to 1796"):
        digits(n_queries=1797)
