"""Encodes, counts and searches on a cluster of three nodes whose workers are killed at random.

Every result is compared with that of one process, bit for bit; in between a node is removed, and in
the end no process may be left.

    python tests/distributed/soak.py --kills 200
"""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "durability")]
os.environ["PYTHONPATH"] = str(HERE.parent)

import numpy as np
from violations import Report

import rankbits
from clusters import Killer, TestCluster
from odd_shards import N_BITS, SlowShard, codes_of
from rankbits import BinaryCodes, affinity, distributed
from rankbits.distributed import _parts, _ranges
from rankbits.index import HammingIndex

N_ITEMS, N_ROWS, WIDTH = 4000, 12 * 4096 + 9, 1024


class Soak:
    """The three jobs, their results of one process, and how often workers died in each."""

    def __init__(self, folder, report, rng, repeat):
        self.folder, self.report, self.rng, self.repeat = Path(folder), report, rng, repeat
        _ranges._USUAL_PAIRS, _ranges._GRAIN, _parts._PART_BYTES = 1, 128, 1
        self.cluster = TestCluster()

    def kill(self, what, n, pause):
        return Killer(self.cluster, self.rng, pause, busy_with=what, most=n)

    def compare(self, job, is_same):
        self.report.count(f"{job}_runs")
        if not is_same:
            self.report.violation(f"{job} differs from one process", "", self.repeat)

    def prepare(self):
        rows = np.random.default_rng(0).standard_normal((N_ROWS, WIDTH)).astype(np.float32)
        np.save(self.folder / "rows.npy", rows)
        self.hasher = rankbits.methods.get("lsh", n_bits=30, random_state=0).fit(rows[:300])
        self.codes = self.hasher.encode(rows)
        self.queries, self.labels = codes_of(99, 6)
        self.shards = [SlowShard(seed, 600, 0.1) for seed in range(20)]
        parts = [codes_of(seed, 600) for seed in range(20)]
        relevance = affinity.classes(self.labels, np.concatenate([labels for _, labels in parts]))
        whole = BinaryCodes.concatenate([codes for codes, _ in parts])
        self.counts = rankbits.count_ties(self.queries, whole, relevance).counts
        distributed.create_index(self.folder / "index", N_BITS, 3)
        self.one = HammingIndex(N_BITS)
        codes, _ = codes_of(7, N_ITEMS)
        with distributed.index(self.folder / "index", writable=True) as index:
            index.add(codes)
        self.one.add(codes)

    def encode(self, n):
        out = self.folder / "codes.npy"
        with self.kill("perform", n, 0.05) as killer:
            distributed.encode(self.hasher, self.folder / "rows.npy", out)
        self.compare("encode", BinaryCodes.load(out) == self.codes)
        left = [name for name in os.listdir(self.folder) if name.startswith(".")]
        if left:
            self.report.violation("an encoding leaves files", left, self.repeat)
        out.unlink()
        return killer.n_sent

    def count(self, n):
        with self.kill("perform", n, 0.2) as killer:
            hist = distributed.count_ties(self.queries, self.shards, query_labels=self.labels)
        self.compare("count", np.array_equal(hist.counts, self.counts))
        return killer.n_sent

    def search(self, n):
        with (
            distributed.index(self.folder / "index", writable=True, replicas=2) as index,
            self.kill("ShardHolder", n, 0.3) as killer,
        ):
            for _ in range(40):
                codes, _ = codes_of(int(self.rng.integers(10**6)), 20)
                ids = index.add(codes)
                same = np.array_equal(ids, self.one.add(codes))
                gone = self.rng.choice(self.one.ids, 10, replace=False)
                index.remove(gone)
                self.one.remove(gone)
                answers = [target.search(self.queries, 9) for target in (index, self.one)]
                same &= all(np.array_equal(a, b) for a, b in zip(*answers, strict=True))
                self.compare("search", same and len(index) == len(self.one))
                if killer.n_sent >= n:
                    break
        return killer.n_sent

    def run(self, n_kills):
        self.prepare()
        killed = dict.fromkeys(("encode", "count", "search"), 0)
        n_rounds = 0
        while sum(killed.values()) < n_kills:
            job = min(killed, key=lambda name: (killed[name], name))
            killed[job] += getattr(self, job)(min(6, n_kills - sum(killed.values())))
            n_rounds += 1
            if n_rounds % 9 == 0:
                self.cluster.remove_node()
                self.cluster.add_node()
                self.report.count("nodes_removed")
        for job, n in killed.items():
            self.report.count(f"kills_in_{job}", n)

    def stop(self):
        left = self.cluster.stop()
        if left:
            self.report.violation("processes are left behind", left, self.repeat)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep-going", action="store_true")
    parser.add_argument("--folder")
    options = parser.parse_args()
    report = Report("cluster", goes_on=options.keep_going)
    repeat = f"{sys.executable} {__file__} --kills {options.kills} --seed {options.seed}"
    folder = tempfile.mkdtemp(dir=options.folder)
    soak = Soak(folder, report, np.random.default_rng(options.seed), repeat)
    try:
        soak.run(options.kills)
    finally:
        soak.stop()
        shutil.rmtree(folder)
    report.finish()


if __name__ == "__main__":
    main()
