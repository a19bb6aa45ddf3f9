"""Mapped files that somebody cuts, writes to or replaces while they are used.

    python tests/durability/cutting.py --cases 3000 --seed 0
    python tests/durability/cutting.py --cases 1 --seed 17      # repeats one case

A case opens a collection, an index or an array from files, damages one of the files before or
while it is used, and uses it in one of all ways that there are. The answer must be that of the
bytes which were there when the file was opened, or an error of rankbits; the process must not die.
After a change, the collection holds what was acknowledged, or it refuses to be opened.
"""

import argparse
import copy
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
from changes import content_of
from violations import Report, Violation

from rankbits import BinaryCodes, affinity, count_ties, evaluate, methods
from rankbits.codes import hamming_distances
from rankbits.compress import compress
from rankbits.compress import load as load_compressed
from rankbits.datasets import load_array
from rankbits.errors import RankbitsError
from rankbits.evaluation import audit, evaluate_vectors
from rankbits.index import Collection, HammingIndex, vectors

N_BITS, N, N_FEATURES = 64, 6000, 24
PATIENCE = 120.0  # seconds for a batch of cases
BATCH = 40


class World:
    """Files that are intact, and what they hold."""

    def __init__(self, folder):
        self.folder, rng = folder, np.random.default_rng(0)
        self.x = rng.standard_normal((N, N_FEATURES)).astype(np.float32)
        self.packed = rng.integers(0, 256, (N, N_BITS // 8), dtype=np.uint8)
        self.ids = rng.permutation(2 * N)[:N].astype(np.int64)
        self.labels = rng.integers(0, 5, N)
        self.hasher = methods.get("itq", n_bits=16, random_state=0).fit(self.x)
        self.model = {
            int(key): code.tobytes() for key, code in zip(self.ids, self.packed, strict=True)
        }
        np.save(folder / "x.npy", self.x)
        np.save(folder / "labels.npy", self.labels)
        BinaryCodes(self.packed, N_BITS).save(folder / "codes.npy")
        compress(
            self.x[:2000],
            out=folder / "compressed",
            n_bytes=1,
            methods=["itq"],
            pools=[50],
            keep=1.0,
            onnx=False,
            random_state=0,
            n_queries=20,
        )
        self.compressed = load_compressed(folder / "compressed")
        self.compressed.search(self.x[:1])  # opens its files now, while they are intact
        with Collection.create(folder / "collection", N_BITS) as collection:
            for start, stop in ((0, 3800), (3800, 5300), (5300, N)):  # none is merged with others
                collection.add(self.packed[start:stop], self.ids[start:stop])
                collection.seal()
            collection.remove(self.ids[:40])
        for key in self.ids[:40].tolist():
            del self.model[key]

    def copy(self, target):
        shutil.copytree(self.folder, target)
        for path in target.rglob("*"):  # older than the clock of a file system can tell apart
            if path.is_file() and path.suffix != ".sqlite":
                os.utime(path, (1e9, 1e9))
        return target


# What is damaged, and how


def cut(path, rng):
    os.truncate(path, int(rng.integers(0, path.stat().st_size)))


def cut_all(path, rng):
    os.truncate(path, 0)


def cut_end(path, rng):
    os.truncate(path, path.stat().st_size - 404)


def flip(path, rng):
    at = int(rng.integers(0, path.stat().st_size))
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ (1 << int(rng.integers(8)))]))


def blank(path, rng):
    size = path.stat().st_size
    with open(path, "r+b") as file:
        file.seek(size // 3)
        file.write(bytes(size // 3))


def cut_and_restore(path, rng):
    raw = path.read_bytes()
    os.truncate(path, 100)
    with open(path, "r+b") as file:
        file.write(raw)


def remove(path, rng):
    path.unlink()


def replace(path, rng):
    other = path.with_name("other")
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    other.write_bytes(raw)
    os.replace(other, path)


def touch(path, rng):
    os.utime(path)


DAMAGES = (cut, cut_all, cut_end, flip, blank, cut_and_restore, remove, replace, touch)


# Ways to use what is mapped: each takes the subject and the world, and returns the answer with what
# it must be. Subjects are opened before the damage.


def distances_to(world, query):
    ids = np.array(sorted(world.model), np.int64)
    packed = np.array([np.frombuffer(world.model[key], np.uint8) for key in ids.tolist()])
    return ids, np.bitwise_count(packed ^ query).sum(axis=1).astype(np.int64), packed


def nearest(world, query, k):
    ids, distances, _ = distances_to(world, query)
    order = np.lexsort((ids, distances))[:k]
    return distances[order].tolist(), ids[order].tolist()


def search(subject, world, rng, **options):
    query = world.packed[rng.integers(N)]
    found = subject.search(query[None], 7, **options)
    return (found[0][0].tolist(), found[1][0].tolist()), nearest(world, query, 7)


def search_by(kind):
    def use(subject, world, rng):
        subject.configure(kind)
        return search(subject, world, rng)

    use.__name__ = f"search_{kind}"
    return use


def search_allowed(subject, world, rng):
    return search(subject, world, rng, allowed=np.array(sorted(world.model)))


def search_rescored(subject, world, rng):
    row = int(rng.integers(40, N))
    query, key = world.packed[row], int(world.ids[row])
    order = np.argsort(world.ids)
    by_row = vectors(world.x[order], world.x[row][None], "l2", ids=world.ids[order])
    _, ids = subject.search(query[None], 1, rerank=by_row, pool=50)
    return int(ids[0, 0]), key


def search_real(subject, world, rng):
    weights = rng.standard_normal(N_BITS)
    ids, _, packed = distances_to(world, world.packed[0])
    scores = (2.0 * np.unpackbits(packed, axis=1) - 1.0) @ weights
    _, found = subject.search_real(weights[None], 5)
    return found[0].tolist(), ids[np.lexsort((ids, -scores))[:5]].tolist()


def within(subject, world, rng):
    query = world.packed[rng.integers(N)]
    ids, distances, _ = distances_to(world, query)
    near = distances <= 20
    order = np.lexsort((ids[near], distances[near]))
    return subject.within(query[None], 20).ids.tolist(), ids[near][order].tolist()


def tie_counts(subject, world, rng):
    query = world.packed[rng.integers(N)]
    _, distances, _ = distances_to(world, query)
    counts = np.bincount(distances, minlength=N_BITS + 1)
    return subject.tie_counts(query[None])[0].tolist(), counts.tolist()


def all_ids(subject, world, rng):
    return subject.ids.tolist(), sorted(world.model)


def is_there(subject, world, rng):
    keys = rng.integers(0, 2 * N, 30).tolist()
    return [key in subject for key in keys], [key in world.model for key in keys]


def some_codes(subject, world, rng):
    keys = rng.choice(sorted(world.model), 30)
    return encoded(subject.codes(keys)), [world.model[key] for key in keys.tolist()]


def all_codes(subject, world, rng):
    return encoded(subject.codes()), [code for _, code in sorted(world.model.items())]


def encoded(codes):
    return [row.tobytes() for row in codes.packed]


def missing_ids(subject, world, rng):
    """An id that is not there is refused, by name."""
    gone = next(key for key in range(2 * N) if key not in world.model)
    try:
        subject.codes([gone])
    except RankbitsError as error:
        return str(gone) in str(error) or "FileFormatError" in repr(type(error)), True
    return False, True


def content(index):
    codes = index.codes()
    return dict(zip(index.ids.tolist(), encoded(codes), strict=True))


def pickled(subject, world, rng):
    return content(pickle.loads(pickle.dumps(subject))), world.model


def deep_copied(subject, world, rng):
    return content(copy.deepcopy(subject)), world.model


def moment(subject, world, rng):
    return content(subject.index(mmap=bool(rng.integers(2)))), world.model


def snapshot(subject, world, rng):
    target = Path(tempfile.mkdtemp(dir=subject.folder.parent)) / "snapshot"
    subject.snapshot(target, link=False)
    with Collection.open(target) as opened:
        return content_of(opened), world.model


def save(subject, world, rng):
    target = Path(tempfile.mkdtemp(dir=FOLDER[0])) / "saved"
    subject.save(target)
    with Collection.open(target) as opened:
        return content_of(opened), world.model


def check(subject, world, rng):
    return subject.check()["items"], len(world.model)


def tune(subject, world, rng):
    subject.configure("mih")
    subject.tune(world.packed[:3], 5)
    return search(subject, world, rng)


READS = [search_by("scan"), search_by("mih"), search_by("auto"), search_allowed, search_rescored]
READS += [search_real, within, tie_counts, all_ids, is_there, some_codes, all_codes, missing_ids]
READS += [tune]
OF_INDEX = [*READS, pickled, deep_copied, save]
OF_COLLECTION = [*READS, moment, snapshot, check]


def change_of(kind):
    """A change of a collection or an index; the content that it must have led to."""

    def use(subject, world, rng):
        model = dict(world.model)
        if kind in ("add", "upsert"):
            n = int(rng.choice([1, 30, 2500, 9000]))
            packed = rng.integers(0, 256, (n, N_BITS // 8), dtype=np.uint8)
            ids = np.arange(3 * N, 3 * N + n)
            if kind == "upsert":
                ids[: n // 2] = world.ids[40 : 40 + n // 2]
            ids = np.unique(ids)
            packed = packed[: len(ids)]
            getattr(subject, kind)(packed, ids)
            model |= {key: row.tobytes() for key, row in zip(ids.tolist(), packed, strict=True)}
        elif kind == "remove":
            gone = rng.choice(sorted(model), int(rng.choice([1, 300, 3500])), replace=False)
            subject.remove(gone)
            for key in gone.tolist():
                del model[key]
        else:
            getattr(subject, kind)()
        world.acknowledged = model
        return content(subject), model

    use.__name__ = kind
    return use


CHANGES = [change_of(kind) for kind in ("add", "upsert", "remove", "compact")]
OF_WRITER = [*OF_COLLECTION, *CHANGES, *CHANGES, *CHANGES, change_of("seal")]


# Arrays


def count_codes(codes, world, rng):
    queries, labels = BinaryCodes(world.packed[:3], N_BITS), world.labels
    found = count_ties(queries, codes, affinity.classes(labels[:3], labels))
    right = BinaryCodes(world.packed, N_BITS)
    expected = count_ties(queries, right, affinity.classes(labels[:3], labels))
    return found.counts.tolist(), expected.counts.tolist()


def evaluate_codes(codes, world, rng):
    queries, labels = BinaryCodes(world.packed[:3], N_BITS), world.labels
    found = evaluate(queries, codes, affinity.classes(labels[:3], labels))
    right = BinaryCodes(world.packed, N_BITS)
    return found.mean, evaluate(queries, right, affinity.classes(labels[:3], labels)).mean


def audit_codes(codes, world, rng):
    queries, labels = BinaryCodes(world.packed[:3], N_BITS), world.labels
    same = affinity.classes(labels[:3], labels)
    right = audit(queries, BinaryCodes(world.packed, N_BITS), same, n_shuffles=3)
    return audit(queries, codes, same, n_shuffles=3).to_dict(), right.to_dict()


def index_codes(codes, world, rng):
    index = HammingIndex(N_BITS)
    index.add(codes)
    return encoded(index.codes()), [row.tobytes() for row in world.packed]


def distances_of_codes(codes, world, rng):
    queries = BinaryCodes(world.packed[:2], N_BITS)
    right = np.bitwise_count(world.packed[:2, None] ^ world.packed).sum(axis=2)
    return hamming_distances(queries, codes).tolist(), right.tolist()


def save_codes(codes, world, rng):
    path = Path(tempfile.mkdtemp(dir=FOLDER[0])) / "copy.npy"
    codes.save(path)
    return encoded(BinaryCodes.load(path)), [row.tobytes() for row in world.packed]


def bits_of_codes(codes, world, rng):
    return codes.bits().tolist(), np.unpackbits(world.packed, axis=1).tolist()


def slice_codes(codes, world, rng):
    rows = rng.integers(0, N, 50)
    return encoded(codes[rows]), [row.tobytes() for row in world.packed[rows]]


def encode_rows(x, world, rng):
    return encoded(world.hasher.encode(x)), encoded(world.hasher.encode(world.x))


def fit_rows(x, world, rng):
    name = str(rng.choice(["pcah", "lsh", "itq"]))
    fitted = [methods.get(name, n_bits=8, random_state=0).fit(rows) for rows in (x, world.x)]
    return tuple(encoded(hasher.encode(world.x)) for hasher in fitted)


def rescore_rows(x, world, rng):
    index = HammingIndex(N_BITS)
    index.add(world.packed)
    query = world.x[:2]
    found, right = (
        index.search(world.packed[:2], 5, rerank=vectors(rows, query, "cosine"), pool=2000)
        for rows in (x, world.x)
    )
    return [part.tolist() for part in found], [part.tolist() for part in right]


def evaluate_rows(x, world, rng):
    same = affinity.classes(world.labels[:3], world.labels)
    return evaluate_vectors(world.x[:3], x, same).mean, evaluate_vectors(
        world.x[:3], world.x, same
    ).mean


def evaluate_labels(labels, world, rng):
    codes = BinaryCodes(world.packed, N_BITS)
    found = evaluate(codes[:3], codes, affinity.classes(world.labels[:3], labels))
    right = evaluate(codes[:3], codes, affinity.classes(world.labels[:3], world.labels))
    return found.mean, right.mean


def fit_labels(labels, world, rng):
    fitted = [
        methods.get("sdh", n_bits=8, random_state=0, n_anchors=20, n_iter=1).fit(
            world.x[:500], y[:500]
        )
        for y in (labels, world.labels)
    ]
    return tuple(encoded(hasher.encode(world.x[:50])) for hasher in fitted)


def search_compressed(compressed, world, rng):
    queries = world.x[rng.integers(0, 2000, 3)]
    return tuple(
        [part.tolist() for part in subject.search(queries, 5, pool=400)]
        for subject in (compressed, world.compressed)
    )


OF_CODES = [count_codes, evaluate_codes, audit_codes, index_codes, distances_of_codes, save_codes]
OF_CODES += [bits_of_codes, slice_codes]
OF_ROWS = [encode_rows, fit_rows, rescore_rows, evaluate_rows]
OF_LABELS = [evaluate_labels, fit_labels]

OF_COMPRESSED = [search_compressed]

FOLDER = [Path()]  # where uses write


def open_compressed(folder):
    compressed = load_compressed(folder / "compressed")
    compressed.search(np.zeros((1, N_FEATURES), np.float32), 1)  # opens its files
    return compressed


def files_of_compressed(folder):
    place = folder / "compressed"
    return [place / "vectors.npy", *sorted((place / "index" / "segments").glob("*.seg"))]


def segments(folder):
    return sorted((folder / "collection" / "segments").glob("*.seg"))


SUBJECTS = {
    "index": (lambda f: HammingIndex.load(f / "collection"), OF_INDEX, segments),
    "reader": (lambda f: Collection.open(f / "collection"), OF_COLLECTION, segments),
    "writer": (lambda f: Collection.open(f / "collection", writable=True), OF_WRITER, segments),
    "codes": (lambda f: BinaryCodes.load(f / "codes.npy"), OF_CODES, lambda f: [f / "codes.npy"]),
    "rows": (lambda f: load_array(f / "x.npy"), OF_ROWS, lambda f: [f / "x.npy"]),
    "compressed": (open_compressed, OF_COMPRESSED, files_of_compressed),
    "labels": (
        lambda f: load_array(f / "labels.npy"),
        OF_LABELS,
        lambda f: [f / "labels.npy"],
    ),
}
WEIGHTS = [4, 4, 7, 2, 2, 1, 1]


def run_case(world, seed, base):
    """What was done, in words, and whether it was answered or refused."""
    rng = np.random.default_rng(seed)
    name = str(rng.choice(list(SUBJECTS), p=np.array(WEIGHTS) / sum(WEIGHTS)))
    open_subject, uses, files_of = SUBJECTS[name]
    use = uses[int(rng.integers(len(uses)))]
    damage, is_beside = DAMAGES[int(rng.integers(len(DAMAGES)))], bool(rng.integers(2))
    words = f"{name}.{use.__name__}, {damage.__name__} {'beside' if is_beside else 'before'} it"
    say(seed=seed, words=words)
    folder = FOLDER[0] = world.copy(base / str(seed))
    subject = open_subject(folder)
    files = files_of(folder)
    path = files[int(rng.integers(len(files)))]
    if is_beside and rng.integers(2):  # it was used before
        with suppress(RankbitsError):
            uses[0](subject, world, np.random.default_rng(seed))
    world.acknowledged = None
    before = Beside(damage, path, rng) if is_beside else damage(path, rng)
    try:
        outcome = judge(use, subject, world, rng, words)
    finally:
        if is_beside:
            before.join()
        if hasattr(subject, "close"):
            subject.close()
    if use.__name__ in ("add", "upsert", "remove", "compact", "seal") and name == "writer":
        look_again(folder, world, words)
    shutil.rmtree(folder)
    return outcome


def say(**fields):
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


class Beside(threading.Thread):
    """Does the damage a moment later, in another thread."""

    def __init__(self, damage, path, rng):
        super().__init__()
        self._damage, self._path, self._rng = damage, path, np.random.default_rng(rng.integers(99))
        self._seconds = float(rng.choice([0.0, 0.0005, 0.002, 0.01]))
        self.start()

    def run(self):
        time.sleep(self._seconds)
        with suppress(FileNotFoundError):  # a change has replaced the file
            self._damage(self._path, self._rng)


def judge(use, subject, world, rng, words):
    try:
        answer, expected = use(subject, world, rng)
    except RankbitsError:
        return "refused"
    except Exception as error:
        raise Violation(f"{words}: {type(error).__name__}: {error}") from error
    if answer != expected:
        raise Violation(f"{words}: a wrong answer")
    return "answered"


def look_again(folder, world, words):
    """What a fresh look at the collection finds is what was acknowledged, or it is refused."""
    try:
        with Collection.open(folder / "collection") as collection:
            found = content_of(collection)
            collection.check()
    except RankbitsError:
        return
    right = world.model if world.acknowledged is None else world.acknowledged
    if found != right and not (world.acknowledged is None and found.keys() != world.model.keys()):
        raise Violation(f"{words}: the collection holds other codes than were acknowledged")


def run_cases(options):
    """Run cases in this process; one line before each, and one after it."""
    world = World(Path(tempfile.mkdtemp(dir=options.base)))
    for seed in range(options.seed, options.seed + options.cases):
        try:
            outcome = run_case(world, seed, options.base)
        except Violation as violation:
            outcome = f"violation: {violation}"
        say(seed=seed, outcome=outcome)


def run_batch(options, start, n, base):
    """The lines of a process that runs some cases, and how it ended."""
    command = [sys.executable, __file__, "--worker", "--base", base, "--seed", start, "--cases", n]
    try:
        done = subprocess.run(
            [*map(str, command)], capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        end = f"the process died: {done.returncode}" if done.returncode else ""
        out, errors = done.stdout, done.stderr
    except subprocess.TimeoutExpired as expired:
        end, out, errors = "the process hangs", (expired.stdout or b"").decode(), ""
    return [json.loads(line) for line in out.splitlines()], end, errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--keep-going", action="store_true", help="count all violations")
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--base", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        run_cases(options)
        return
    report = Report("cutting", goes_on=options.keep_going)
    base = Path(tempfile.mkdtemp(dir=options.folder))
    start, end_of_all = options.seed, options.seed + options.cases
    try:
        while start < end_of_all:
            n = min(BATCH, end_of_all - start)
            lines, end, errors = run_batch(options, start, n, base)
            last = {"seed": start, "words": "starting"}
            for line in lines:
                last = line
                if "outcome" in line:
                    report.count("cases")
                    outcome = line["outcome"]
                    report.count(outcome if " " not in outcome else "violated")
                    if outcome.startswith("violation"):
                        tell(report, outcome.removeprefix("violation: "), "", line["seed"])
            if end:
                report.count("cases")
                tell(report, end, f"{last.get('words')}; {errors[-400:]}", last["seed"])
                start = last["seed"] + 1
            else:
                start += n
    finally:
        shutil.rmtree(base, ignore_errors=True)
    report.finish()


def tell(report, sentence, detail, seed):
    report.violation(
        sentence, detail, f"python tests/durability/cutting.py --cases 1 --seed {seed}"
    )


if __name__ == "__main__":
    main()
