"""Folders made by strangers: collections that are wrong in every way, with all checksums repaired.

    python tests/durability/hostile.py --cases 2000 --seed 0
    python tests/durability/hostile.py --seed 1234 --cases 1    # repeats one case

A case takes a valid collection, changes fields of its rows, its schema, its segment files or what
its names stand for, repairs the checksums and counts, and does with it all that can be done with a
collection. The answer is a result whose ids and distances are right, or an error of rankbits in
one line, within a second. Anything else is a violation: another exception, a crash (run it under
AddressSanitizer), a result that cannot be, a file outside of the folder that was changed, a hang.
"""

import shutil
import sqlite3
import time
import traceback
import warnings
from contextlib import closing

import internals
import numpy as np
from hostile_rows import Rows, mutate_field, mutate_ids_against_codes, mutate_rows, pick
from hostile_schema import mutate_files, mutate_schema
from hostile_segments import mutate_bits, mutate_data, mutate_header
from hostile_uses import Twice, Wrong, codes_for, factors_for, passes_check, uses_of
from watched import Watch, parse_options, work

from rankbits import BinaryCodes
from rankbits.errors import RankbitsError
from rankbits.index import Collection

LIMIT = 1.0  # seconds for a case
TOO_LONG = "takes more than a second"
VICTIM = b"a file of somebody else\n"


# Valid collections


def build_templates(base):
    """Collections of several shapes: name, folder."""
    rng = np.random.default_rng(5)
    shapes = {
        "range ids": (13, range(150), (), range(150, 160)),
        "listed ids": (64, range(3, 900, 7), (10, 17), range(5000, 5100, 9)),
        "removed": (20, range(100, 300), range(110, 260, 2), ()),
        "unsealed only": (9, (), (), range(0, 60, 3)),
        "one word and a bit": (65, range(70), range(9), range(70, 75)),
        "empty": (24, (), (), ()),
        "one item": (1, (4,), (), ()),
        "factors": (30, range(80), range(7), range(80, 90)),
        "side": (30, range(80), range(7), range(80, 90)),
        "factors and side": (17, range(80), range(7), range(80, 90)),
    }
    for number, (name, (n_bits, sealed, removed, unsealed)) in enumerate(shapes.items()):
        folder = base / f"template-{number}"
        model = "f00d" if number % 2 else None
        side = "items" if "side" in name else None
        with Collection.create(folder, n_bits, factors="factors" in name) as collection:
            for ids in (sealed, [key + 10_000 for key in sealed]) if number == 1 else (sealed,):
                if len(ids):
                    codes = BinaryCodes(codes_for(rng, len(ids), n_bits), n_bits, model, side)
                    collection.add(codes, ids=list(ids), **factors_for(rng, collection, len(ids)))
                    collection.seal()
            if len(removed):
                collection.remove(list(removed))
            if len(unsealed):
                codes, factors = (
                    codes_for(rng, len(unsealed), n_bits),
                    factors_for(rng, collection, len(unsealed)),
                )
                collection.add(codes, ids=list(unsealed), **factors)
    return list(shapes)


MUTATIONS = {
    mutate_field: 8,
    mutate_rows: 3,
    mutate_bits: 3,
    mutate_ids_against_codes: 3,
    mutate_header: 5,
    mutate_data: 4,
    mutate_schema: 3,
    mutate_files: 2,
}
NEED_SEGMENTS = {mutate_header, mutate_data}


class Case:
    """One folder that is about to become hostile."""

    def __init__(self, base, templates, seed):
        self.rng = np.random.default_rng(seed)
        self._place = base / "case"
        shutil.rmtree(self._place, ignore_errors=True)
        self.folder = self._place / "collection"
        number = int(self.rng.integers(len(templates)))
        shutil.copytree(base / f"template-{number}", self.folder)
        self.victim = self._place / "victim"
        self.victim.write_bytes(VICTIM)
        self.words = [f"{templates[number]}: "]
        self.n_served = self.n_refused = 0

    def say(self, text, end="; "):
        self.words.append(text + end)

    def segments(self):
        return sorted((self.folder / "segments").glob("*.seg"))

    def rows(self, *, is_repaired=True):
        return _Opened(self, is_repaired=is_repaired)

    def name_segment(self, path, crc, n):
        """Let the manifest name a file as it is now."""
        with self.rows() as rows:
            for row, fields in rows.of(internals.MANIFEST):
                if fields[0] == int(path.stem):
                    rows.set(internals.MANIFEST, fields, "header_crc", crc)
                    if self.rng.random() < 0.7 and n < 2**63:
                        before = rows.value(internals.MANIFEST, fields, "n")
                        alive = rows.value(internals.MANIFEST, fields, "n_alive")
                        rows.set(internals.MANIFEST, fields, "n", n)
                        if isinstance(before, int) and isinstance(alive, int):
                            rows.set(internals.MANIFEST, fields, "n_alive", alive + n - before)
                    rows.put(internals.MANIFEST, row, fields)

    def mutate(self):
        """One mutation, or a few on top of each other; files last, as they hide the rest."""
        n = int(pick(self.rng, (1, 1, 1, 2, 3)))
        mutations = [mutation for mutation, weight in MUTATIONS.items() for _ in range(weight)]
        chosen = [pick(self.rng, mutations) for _ in range(n)]
        for mutation in sorted(chosen, key=list(MUTATIONS).index):
            if mutation in NEED_SEGMENTS and not self.segments():
                continue
            try:
                mutation(self, self.rng)
            except (
                OSError,
                sqlite3.Error,
                StopIteration,
                ArithmeticError,
                LookupError,
                TypeError,
                ValueError,
            ) as error:
                self.say(f"(not applied: {error})")  # what came before was too much for it


class _Opened:
    """The rows of a case for one mutation, repaired afterwards: counts as far as chance has it."""

    def __init__(self, case, *, is_repaired):
        self._case, self._is_repaired = case, is_repaired

    def __enter__(self):
        self._rows = Rows(self._case.folder)
        return self._rows

    def __exit__(self, *error):
        with closing(self._rows.database):
            if error[0] is None and self._is_repaired:
                counts = (self._rows.repair_alive, self._rows.repair_counts)
                repairs = [repair for repair in counts if self._case.rng.random() < 0.75]
                for repair in (*repairs, self._rows.repair_checksums):
                    try:
                        repair()
                    except (sqlite3.Error, StopIteration, ValueError, TypeError, OverflowError):
                        self._case.say("(not repaired)")


def run_case(base, templates, seed):
    """What is wrong in one case: sort, detail; and the case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = Case(base, templates, seed)
        case.mutate()
        start = time.monotonic()
        for use in uses_of(case.rng):
            try:
                use(case.folder, np.random.default_rng(seed))
                case.n_served += 1
            except RankbitsError as error:
                case.n_refused += 1
                if "\n" in str(error) or not str(error):
                    return f"{use.__name__}: an error of more than one line", str(error), case
            except Wrong as error:
                is_left_to_check = isinstance(error, Twice) or use.__name__ == "read_unverified"
                if is_left_to_check and not passes_check(case.folder):
                    continue  # what opening does not look at, by its contract, a check refuses
                return f"{use.__name__}: a result that cannot be", str(error), case
            except Exception as error:  # noqa: BLE001  what this tool looks for
                sort = f"{use.__name__}: raises {type(error).__name__}"
                return sort, traceback.format_exc(limit=-4), case
            if case.victim.read_bytes() != VICTIM:
                return f"{use.__name__}: changes a file outside of the folder", "", case
        seconds = time.monotonic() - start
    if seconds > LIMIT:
        return TOO_LONG, f"{seconds:.1f} s", case
    return None, f"{seconds:.3f}", case


def outcome_of(base, templates, seed):
    """What came of one case, for the report."""
    sort, detail, case = run_case(base, templates, seed)
    outcome = {"words": "".join(case.words), "served": case.n_served, "refused": case.n_refused}
    return {"sort": sort, "detail": detail, **outcome}


def take_in(report, message):
    for name in ("served", "refused"):
        report.count(name, message[name])
    if not message["sort"]:
        slowest = max(report.counts.get("slowest_seconds", 0.0), float(message["detail"]))
        report.counts["slowest_seconds"] = slowest


def main():
    options = parse_options(__doc__.splitlines()[0])
    if not options.work:
        Watch("hostile", __file__, options, take_in).run()
        return
    base = options.work / "all"
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir()
    templates = build_templates(base)
    seeds = range(options.seed, options.seed + options.cases)
    work(seeds, lambda seed: outcome_of(base, templates, seed), TOO_LONG)


if __name__ == "__main__":
    main()
