"""Peers: quantizers of faiss and raw signs, measured as our own candidates are."""

import numpy as np
import pytest

from compressing import task_of
from rankbits import methods
from rankbits.compress._measuring import Exam, score_kind
from rankbits.compress._peers import PEERS, measure_peer

faiss = pytest.importorskip("faiss")
BY_NAME = {peer.name: peer for peer in PEERS}


@pytest.fixture(autouse=True)
def one_thread():
    """On a busy machine its threads wait for each other far longer than they work."""
    n_threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    yield
    faiss.omp_set_num_threads(n_threads)


def measured(vectors, name, n_bytes, pools=(20,)):
    task, truth = task_of(vectors)
    return measure_peer(
        BY_NAME[name], n_bytes, task, truth, task.training_rows(20_000, 0), pools, 0
    )


def test_raw_signs_of_all_numbers_score_as_our_sign_does(vectors):
    task, truth = task_of(vectors)
    content = measured(vectors, "sentence-transformers binary", 4)
    hasher = methods.get("sign", n_bits=32, center=False).fit(task.items)
    exam = Exam(task, truth, [20], 1)
    ours = score_kind(exam.open_search(hasher), "bits", exam)
    theirs = content["kinds"]["bits"]["values"]
    for pool in ("none", "20"):
        assert np.mean(theirs[pool]["overlap@10"]) == pytest.approx(
            np.mean(ours[pool]["overlap@10"]), abs=1e-9 if pool == "none" else 0.02
        )  # a pool is cut by faiss's own order of ties


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["faiss PQ", pytest.param("faiss OPQ", marks=pytest.mark.slow)])
def test_quantizers_weigh_more_than_their_codes_and_find_much(vectors, name):
    content = measured(vectors, name, 4)
    assert content["model_bytes"] > 4 * 256 * 8 * 2
    assert np.mean(content["kinds"]["real"]["values"]["none"]["overlap@10"]) > 0.3


@pytest.mark.parametrize(
    ("name", "n_bytes", "reason"),
    [
        ("faiss RaBitQ", 8, "8 of its bytes are factors"),
        ("faiss RQ", 32, "train for hours"),
        ("faiss PQ", 5, "equal parts"),
        ("sentence-transformers binary", 8, "one bit for each of 32 numbers"),
    ],
)
def test_what_a_peer_cannot_make_is_left_out(vectors, name, n_bytes, reason):
    assert reason in measured(vectors, name, n_bytes)["left_out"]
