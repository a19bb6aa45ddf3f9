"""Two writers, readers that may not write, files of others: what was told can be relied on.

    python tests/durability/writers.py --rounds 50 --seed 0
    python tests/durability/writers.py --rounds 1 --seed 17 --only fork   # repeats one round

`lock`     The lock file is deleted, renamed or replaced under an open writer, and a second writer
           is opened. Both go on, in turns or at the same time.
`fork`     A process with an open writer forks, and both go on.
`reader`   A reader without permission to write, while a writer comes and goes: what it is given is
           what was committed last, or it is refused.
`foreign`  Files of others, and links, among the segments.
`link`     The folder of segments is a link to another folder.

No id is acknowledged twice, every item that was acknowledged is there at the end with its code, and
the check passes.
"""

import argparse
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import internals
import numpy as np
from changes import N_BITS, content_of, random_codes
from children import Child, decoded, encoded
from violations import Report, Violation

from rankbits.errors import RankbitsError
from rankbits.index import Collection

NOBODY = 65534
N_STEPS = 12


# Writers that do not know of each other


def add_some(collection, rng, tell, who):
    """One change, told before and after."""
    kind = rng.choice(["add", "add", "add", "seal", "compact"])
    try:
        if kind == "add":
            codes = random_codes(rng, int(rng.choice([1, 2, 45])))
            ids = collection.add(codes)
            pairs = zip(ids.tolist(), codes, strict=True)
            tell("acknowledged", who=who, items=encoded({i: code.tobytes() for i, code in pairs}))
        else:
            getattr(collection, kind)()
            tell("acknowledged", who=who, items=[])
    except RankbitsError as error:
        tell("refused", who=who, text=str(error))


def write_on_command(collection, seed, who, tell, wait):
    """`.` is one change, `*` many without being asked, `q` closes."""
    rng = np.random.default_rng([seed, ord(who[0])])
    while command := wait():
        if command == "q":
            collection.close()
            tell("closed", who=who)
            return
        for _ in range(N_STEPS if command == "*" else 1):
            add_some(collection, rng, tell, who)
        tell("changed", who=who)


def run_writer(folder, seed, who, tell, wait):
    try:
        collection = Collection.open(folder, writable=True)
    except RankbitsError as error:
        tell("refused", who=who, text=str(error))
        tell("opened", who=who, is_open=False)
        return
    tell("opened", who=who, is_open=True)
    write_on_command(collection, seed, who, tell, wait)


def drive(children, rng):
    """Let the writers go on, in turns or all at once; what they tell."""
    messages = []
    if rng.random() < 0.5:
        for number in rng.integers(0, len(children), N_STEPS):
            children[number].command(".")
            messages += children[number].messages_until("changed")
    else:
        for child in children:
            child.command("*")
        for child in children:
            messages += child.messages_until("changed")
    if rng.random() < 0.5:
        for number in rng.permutation(len(children)):
            children[number].command("q")
            messages += children[number].messages_until("closed")
    return messages


def judge(folder, first, messages, report):
    """Compare what the writers were told with what is there."""
    model = dict(first)
    for message in messages:
        if message["event"] == "broke":
            raise Violation(f"{message['what']}: {message['text']}")
        if message["event"] == "refused":
            report.count("refused")
        if message["event"] == "acknowledged":
            items = decoded(message["items"])
            report.count("acknowledged", len(items))
            if items.keys() & model.keys():
                twice = min(items.keys() & model.keys())
                raise Violation(
                    f"an id was acknowledged twice: {twice}, by {message['who']} at last"
                )
            model |= items
    try:
        with Collection.open(folder, writable=True) as collection:
            content = content_of(collection)
            collection.check()
            collection.add(random_codes(np.random.default_rng(0), 1))
    except RankbitsError as error:
        raise Violation(f"it cannot be opened to write, or is damaged: {error}") from error
    lost = [key for key, code in model.items() if content.get(key) != code]
    if lost:
        raise Violation(f"items that were acknowledged are gone or others: {len(lost)}")


def start_collection(base, rng):
    folder = base / "collection"
    with Collection.create(folder, N_BITS) as collection:
        collection.add(random_codes(rng, 50))
        first = content_of(collection)
    return folder, first


def lose_lock(base, rng, seed, report):
    """The lock file goes away under an open writer, and a second one is opened."""
    folder, first = start_collection(base, rng)
    children = [Child(lambda tell, wait: run_writer(folder, seed, "a", tell, wait))]
    try:
        messages = children[0].messages_until("opened")
        for lock in folder.glob("*.lock"):
            way = rng.integers(3)
            if way == 0:
                lock.unlink()
            elif way == 1:
                lock.rename(base / "elsewhere")
            else:
                (base / "new").write_bytes(b"")
                os.replace(base / "new", lock)
        children.append(Child(lambda tell, wait: run_writer(folder, seed, "b", tell, wait)))
        opened = children[1].messages_until("opened")
        messages += opened
        is_open = opened[-1].get("is_open", False)
        report.count("second_writers_opened", is_open)
        messages += drive(children if is_open else children[:1], rng)
    finally:
        for child in children:
            child.kill()
    judge(folder, first, messages, report)


def fork_writer(base, rng, seed, report):
    """A process that has a writer open becomes three, and all go on."""
    folder, first = start_collection(base, rng)
    messages, n_own = [], int(rng.integers(0, 3))

    def tell(event, **rest):
        messages.append({"event": event, **rest})

    with Collection.open(folder, writable=True) as collection:
        add_some(collection, rng, tell, "p")
        children = [
            Child(lambda tell, wait, who=who: write_on_command(collection, seed, who, tell, wait))
            for who in "qr"
        ]
        try:
            for _ in range(n_own):
                add_some(collection, rng, tell, "p")
            messages += drive(children, rng)
            for _ in range(n_own):
                add_some(collection, rng, tell, "p")
        finally:
            for child in children:
                child.kill()
    judge(folder, first, messages, report)


# Readers that may not write


def run_reader(folder, tell, wait):
    """Look when told to; opens again after it was refused."""
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    collection = None
    while wait():
        try:
            if collection is None:
                collection = Collection.open(folder)
            tell("saw", content=encoded(content_of(collection)))
        except RankbitsError as error:
            tell("saw", content=None, text=str(error))
            if collection is not None:
                collection.close()
            collection = None


def read_only(base, rng, seed, report):
    """A reader of another user, beside a writer that opens, commits and closes."""
    if os.getuid() != 0:
        report.count("skipped_without_root")
        return
    folder, model = start_collection(base, rng)
    os.chmod(base, 0o755)
    reader, writer = Child(lambda tell, wait: run_reader(folder, tell, wait)), None
    try:
        for _ in range(N_STEPS):
            if writer is None and rng.random() < 0.7:
                writer = Collection.open(folder, writable=True)
            if writer is not None and rng.random() < 0.7:
                codes = random_codes(rng, int(rng.choice([1, 45])))
                pairs = zip(writer.add(codes).tolist(), codes, strict=True)
                model = {**model, **{key: code.tobytes() for key, code in pairs}}
            if writer is not None and rng.random() < 0.4:
                writer.close()
                writer = None
            reader.command()
            message = reader.messages_until("saw")[-1]
            if message["event"] == "broke":
                raise Violation(f"{message['what']}: {message['text']}")
            report.count("looks")
            if message["content"] is None:
                report.count("looks_refused")
            elif decoded(message["content"]) != model:
                n, right = len(message["content"]), len(model)
                raise Violation(
                    f"a reader that may not write sees an old state: {n} of {right} items"
                )
    finally:
        reader.kill()
        if writer is not None:
            writer.close()


# Files of others

STRANGERS = (
    "notes.segmentation.txt",
    "12.seg.bak",
    ".seg",
    "007.seg",
    "-1.seg",
    "1e3.seg",
    "9.SEG",
)
LINKS = ("98.seg", "link.seg", ".97.seg.abcdefgh")
STRANGERS += ("x.seg", "3.seg.txt", "١٢.seg", "99999999999999999999999.seg", " 5.seg", "4.seg ")


def change_all(folder):
    """Everything after which files are deleted."""
    rng = np.random.default_rng(0)
    with Collection.open(folder, writable=True) as collection:
        ids = collection.add(random_codes(rng, 45))
        collection.seal()
        collection.remove(ids[:30])
        collection.compact()
        collection.add(random_codes(rng, 1))


def leave_foreign(base, rng, seed, report):
    """Files that a collection did not make stay as they are, also behind links."""
    folder, _ = start_collection(base, rng)
    change_all(folder)
    victim, segments = base / "victim", folder / "segments"
    victim.write_text("precious")
    for name in STRANGERS:
        (segments / name).write_text(name)
    for name in LINKS:
        (segments / name).symlink_to(victim)
    change_all(folder)
    gone = [name for name in (*STRANGERS, *LINKS) if not (segments / name).is_file()]
    report.count("foreign_files", len(STRANGERS) + len(LINKS))
    if gone or victim.read_text() != "precious":
        raise Violation(f"opening for writing deletes files of others: {gone}")


def follow_link(base, rng, seed, report):
    """Behind a folder of segments that is a link, nothing is deleted."""
    folder, _ = start_collection(base, rng)
    change_all(folder)
    elsewhere, names = base / "elsewhere", ("44.seg", ".45.seg.abcdefgh", "notes.txt")
    os.rename(folder / "segments", elsewhere)
    for name in names:
        (elsewhere / name).write_text("precious")
    (folder / "segments").symlink_to(elsewhere)
    with suppress(RankbitsError):
        change_all(folder)
    lost = [name for name in names if not (elsewhere / name).exists()]
    report.count("foreign_files", len(names))
    if lost:
        raise Violation(f"a link in place of the folder of segments is followed: {lost} deleted")


ROUNDS = {"lock": lose_lock, "fork": fork_writer, "reader": read_only, "foreign": leave_foreign}
ROUNDS["link"] = follow_link
ONCE = ("foreign", "link")  # nothing random in it


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", choices=ROUNDS)
    parser.add_argument("--keep-going", action="store_true", help="count all violations")
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    internals.seal_early()
    report = Report("writers", goes_on=options.keep_going)
    for name, run in ROUNDS.items():
        if options.only not in (None, name):
            continue
        for seed in range(options.seed, options.seed + (1 if name in ONCE else options.rounds)):
            base = Path(tempfile.mkdtemp(dir=options.folder)).resolve()
            report.count(f"rounds_{name}")
            try:
                run(base, np.random.default_rng(seed), seed, report)
            except Violation as violation:
                sort, _, detail = str(violation).partition(":")
                command = "python tests/durability/writers.py --rounds 1"
                repeat = f"{command} --seed {seed} --only {name}"
                report.violation(f"{name}, {sort}", f"seed {seed}:{detail}", repeat)
            finally:
                shutil.rmtree(base, ignore_errors=True)
    report.finish()


if __name__ == "__main__":
    main()
