"""Qrels files of TREC and BEIR, whose queries and items have names of their own."""

import tracemalloc

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from rankbits import BinaryCodes, evaluate
from rankbits.affinity import judgements, qrels_pairs, read_judgements
from rankbits.errors import FileFormatError, InputError

EVERYTHING = slice(None)
QUERIES, ITEMS = ["q-1", "301", "été"], ["doc_7", "FT911-3", "0042", "clueweb09/x"]
TREC = "q-1 0 doc_7 2\n301 Q0 0042 1\n\n301\t0\tFT911-3\t0\nété 0 clueweb09/x 1\n"
BEIR = "query-id\tcorpus-id\tscore\nq-1\tdoc_7\t2\n301\t0042\t1\n301\tFT911-3\t0\n"
BEIR += "été\tclueweb09/x\t1\n"
MATRIX = [[2, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


def written(folder, text, name="test.qrels"):
    path = folder / name
    path.write_bytes(text.encode())
    return path


def matrix_of(judged):
    return judged.levels[judged.indices(EVERYTHING, EVERYTHING)].tolist()


@pytest.mark.parametrize(
    "text",
    [
        TREC,
        BEIR,
        BEIR.replace("-id", "_id"),
        BEIR.replace("\n", "\r\n"),
        "\ufeff" + BEIR,
        BEIR.partition("\n")[2],
    ],
    ids=["trec", "beir", "underscores", "windows", "byte order mark", "no header"],
)
def test_each_judged_pair_has_its_level_at_the_rows_of_its_ids(tmp_path, text):
    judged = read_judgements(written(tmp_path, text), QUERIES, ITEMS)
    assert matrix_of(judged) == MATRIX
    counts = judged.counts
    assert (counts.n_pairs, counts.n_used, counts.n_negative) == (4, 4, 0)
    assert (counts.n_unknown_queries, counts.n_unknown_items) == (0, 0)


def test_ids_may_be_arrays_of_strings_objects_or_integers(tmp_path):
    path = written(tmp_path, "7 0 12 1\n")
    for query_ids, item_ids in (
        ([7, 8], [11, 12]),
        (np.array([7, 8], np.uint8), np.array(["11", "12"])),
        (np.array(["7", "8"], object), ("11", "12")),
    ):
        assert matrix_of(read_judgements(path, query_ids, item_ids)) == [[0, 1], [0, 0]]


GRADES = st.dictionaries(
    st.tuples(st.sampled_from("abcde"), st.sampled_from("vwxyz")), st.integers(-2, 3), min_size=1
)


@given(grades=GRADES, queries=st.permutations("abc"), items=st.permutations("vwx"))
def test_unknown_ids_are_left_out_and_counted_and_negative_grades_are_0(
    tmp_path_factory, grades, queries, items
):
    known = {pair: v for pair, v in grades.items() if pair[0] in queries and pair[1] in items}
    lines = [f"{query} 0 {item} {grade}\n" for (query, item), grade in grades.items()]
    path = written(tmp_path_factory.mktemp("qrels"), "".join(lines))
    if not known:
        with pytest.raises(InputError, match="must judge some of these queries and items"):
            read_judgements(path, queries, items)
        return
    judged = read_judgements(path, queries, items)
    expected = [[max(known.get((query, item), 0), 0) for item in items] for query in queries]
    assert matrix_of(judged) == expected
    counts = judged.counts
    assert (counts.n_pairs, counts.n_used) == (len(grades), len(known))
    assert counts.n_unknown_queries == len({query for query, _ in grades} - set(queries))
    missing = {item for query, item in grades if query in queries} - set(items)
    assert counts.n_unknown_items == len(missing)
    assert counts.n_negative == sum(grade < 0 for grade in known.values())


def test_scores_by_ids_are_those_of_trec_eval(tmp_path):
    rng = np.random.default_rng(4)
    n_items = 12
    item_ids = [f"d{number}" for number in rng.permutation(n_items)]
    lines = [f"{q} 0 d{i} {rng.integers(-1, 4)}\n" for q in ("up", "down") for i in range(n_items)]
    path = written(tmp_path, "".join(lines))
    codes = BinaryCodes.from_bits(np.tri(n_items, n_items, -1, dtype=int))  # item j has j ones
    queries = BinaryCodes.from_bits([[0] * n_items, [1] * n_items])  # near to far, far to near
    judged = read_judgements(path, ["up", "down"], item_ids)
    names = {"AP": "map", "AP(total)@5": "map_cut_5", "RR": "recip_rank", "P@5": "P_5"}
    names |= {"nDCG(linear)": "ndcg", "nDCG(linear)@5": "ndcg_cut_5"}
    result = evaluate(queries, codes, judged, names).per_query
    with open(path) as file:
        qrels = pytrec_eval.parse_qrel(file)
    ranked = {"up": [-float(j) for j in range(n_items)], "down": [float(j) for j in range(n_items)]}
    run = {query: dict(zip(item_ids, scores, strict=True)) for query, scores in ranked.items()}
    measures = {"map", "map_cut.5", "recip_rank", "P.5", "ndcg", "ndcg_cut.5"}
    expected = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    for name, key in names.items():
        by_trec_eval = [expected[query][key] for query in ("up", "down")]
        assert result[name].tolist() == pytest.approx(by_trec_eval, abs=1e-12), name


def test_an_empty_file_judges_nothing(tmp_path):
    judged = read_judgements(written(tmp_path, ""), QUERIES, ITEMS)
    assert (judged.shape, judged.levels.tolist(), judged.counts.n_pairs) == ((3, 4), [0], 0)


def test_a_pair_that_comes_twice_counts_once_if_its_grades_agree(tmp_path):
    line = "q-1 0 doc_7 2\n"
    judged = read_judgements(written(tmp_path, 2 * line), QUERIES, ITEMS)
    assert matrix_of(judged) == [[2, 0, 0, 0], [0] * 4, [0] * 4]
    assert (judged.counts.n_pairs, judged.counts.n_used) == (2, 2)
    with pytest.raises(FileFormatError, match=r"line 2 gives query 'q-1' and item 'doc_7' the le"):
        read_judgements(written(tmp_path, line + line.replace("2", "1")), QUERIES, ITEMS)


@pytest.mark.parametrize(
    "line",
    [
        "q-1 doc_7",
        "q-1 0 doc_7 x 2",
        "q-1 0 doc_7 1.5",
        "q-1 0 doc_7 yes",
        "q-1\t\t2",
        "query-id corpus-id score",
        "q-1 0 doc_7 9999999999999999999",
    ],
)
def test_a_line_that_judges_no_pair_is_named(tmp_path, line):
    path = written(tmp_path, f"q-1 0 doc_7 2\n{line}\n")
    with pytest.raises(FileFormatError, match=r"test\.qrels, line 2 must be query, item, level or"):
        read_judgements(path, QUERIES, ITEMS)


def test_what_is_no_text_or_no_file_is_refused(tmp_path):
    (tmp_path / "bytes.qrels").write_bytes(b"q-1 0 \xff\xfe 1\n")
    with pytest.raises(FileFormatError, match=r"line 1 must be UTF-8 text"):
        read_judgements(tmp_path / "bytes.qrels", QUERIES, ITEMS)
    with pytest.raises(InputError, match=r"there is no .*absent"):
        read_judgements(tmp_path / "absent.qrels", QUERIES, ITEMS)


def test_ids_of_another_kind_are_refused_with_an_example_of_each(tmp_path):
    with pytest.raises(InputError, match=r"ids like 'q-1' and 'doc_7', query_ids are like '0' and"):
        read_judgements(written(tmp_path, TREC), [0, 1], [0, 1, 2])


@pytest.mark.parametrize(
    ("ids", "reason"),
    [
        (["a", "b", "a"], "must be different from each other, 'a' comes twice"),
        ([1, 2, 1], "'1' comes twice"),
        ([], "strings or integers of shape"),
        ([1.0, 2.0], "strings or integers of shape"),
        ([["a", "b"]], "strings or integers of shape"),
        ([None, "a"], "strings or integers of shape"),
    ],
)
def test_ids_that_name_nothing_or_two_rows_are_refused(tmp_path, ids, reason):
    path = written(tmp_path, TREC)
    with pytest.raises(InputError, match=rf"^query_ids .*{reason}"):
        read_judgements(path, ids, ITEMS)
    with pytest.raises(InputError, match=rf"^database_ids .*{reason}"):
        read_judgements(path, QUERIES, ids)


def test_the_pairs_of_a_file_come_in_order_with_their_line(tmp_path):
    pairs = list(qrels_pairs(written(tmp_path, TREC)))
    assert [pair.line for pair in pairs] == [1, 2, 4, 5]
    assert pairs[0] == (1, "q-1", "doc_7", 2)


def test_rows_of_judgements_are_what_they_were_made_of():
    rows = [[0, 2, 1], [1, 0, 3], [1, 1, 0]]
    assert judgements(rows[::-1], 2, 3).rows.tolist() == rows


@pytest.mark.parametrize("kind", [list, tuple, lambda ids: np.array(ids, object)])
def test_one_long_id_costs_its_own_length(tmp_path, kind):
    ids = ["x" * 50_000, *map(str, range(2000))]
    (tmp_path / "qrels").write_text("7 0 8 1\n")
    tracemalloc.start()
    judged = read_judgements(tmp_path / "qrels", kind(ids), kind(ids))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert judged.rows.tolist() == [[8, 9, 1]]
    assert peak < 3_000_000  # as texts of one width they would be 400 MB
