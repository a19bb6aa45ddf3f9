"""Where an encoding on a cluster writes: what it goes on with, and what it leaves alone."""

import json

import numpy as np
import pytest

from rankbits._json import seal
from rankbits.codes.note import Note
from rankbits.distributed._encode_tasks import EncodeJob, encode_part, join_parts
from rankbits.distributed._manifest import FORMAT, VERSION, EncodingManifest, locked
from rankbits.distributed._output import Output
from rankbits.distributed._parts import InputPart, Target
from rankbits.errors import FileFormatError, InputError

RUN = {"model": "abc", "side": "items", "step": 64, "inputs": [{"path": "a.npy", "size": 9}]}


@pytest.fixture
def manifest(tmp_path):
    """One of a run that was stopped, as it lies on the disk."""
    running = EncodingManifest(tmp_path, RUN, 128)
    running.parts["00000-000000000000.npy"] = 17
    running.outputs["00000-a.npy"] = {"rows": 5}
    running.write()
    return tmp_path / "manifest.json"


def test_a_manifest_is_gone_on_with(manifest):
    resumed = EncodingManifest.resume(manifest.parent, RUN)
    assert resumed.rows_per_part == 128
    assert resumed.parts == {"00000-000000000000.npy": 17}
    with pytest.raises(InputError, match="a run with other model"):
        EncodingManifest.resume(manifest.parent, {**RUN, "model": "other"})


STRANGE = (None, True, -1, 0, 1.5, "x", [], [[]], [1, {}], {"a": "b"})


@pytest.mark.parametrize("is_sealed", [False, True])
def test_a_manifest_that_was_altered_is_refused_in_one_sentence(manifest, is_sealed):
    """Each of its fields is removed, and replaced by values of other kinds."""
    whole = json.loads(manifest.read_bytes())
    for field in whole:
        for value in (..., *STRANGE):
            record = {**whole, field: value}
            if value is ... or value == whole[field]:
                del record[field]
            data = json.dumps(record).encode()
            if is_sealed:
                hidden = ("format", "version", "json_sha256")
                data = seal(FORMAT, VERSION, {k: v for k, v in record.items() if k not in hidden})
            manifest.write_bytes(data)
            try:
                resumed = EncodingManifest.resume(manifest.parent, RUN)
            except InputError as error:
                message = str(error)
            else:  # made up by somebody who knows how, and fitting this run
                assert is_sealed
                assert isinstance(resumed.parts, dict)
                message = ""
            assert "\n" not in message


@pytest.mark.parametrize("data", [b"", b"[]", b"[[1]]", b"{}", b"[" * 10**5, b"\xff", b"null"])
def test_what_is_no_manifest_is_refused_in_one_sentence(manifest, data):
    manifest.write_bytes(data)
    with pytest.raises(FileFormatError, match=r"out must be new, or what .*manifest\.json"):
        EncodingManifest.resume(manifest.parent, RUN)


def test_a_manifest_that_is_a_folder_is_refused(tmp_path):
    (tmp_path / "manifest.json").mkdir()
    with pytest.raises(FileFormatError, match="out must be new"):
        EncodingManifest.resume(tmp_path, RUN)


@pytest.mark.parametrize("out", ["codes.npy", "codes"])
def test_the_end_of_a_run_removes_its_parts_and_nothing_else(tmp_path, out):
    output = Output(str(tmp_path / out))
    output.require_new()
    output.make_folders()
    own = ["lock", "00000-000000000000.npy", "joined-a.npy", "model/model.json"]
    own += [".00001-000000000064.npy.01234567", ".model.01234567.part/model.json"]
    for name in [*own, "notes.txt", "model/notes.txt"]:
        (output.work / name).parent.mkdir(exist_ok=True)
        (output.work / name).write_text(name)
    output.finish(EncodingManifest(output.place, RUN, 128))
    left = sorted(str(p.relative_to(output.work)) for p in output.work.rglob("*") if p.is_file())
    assert left == ["model/notes.txt", "notes.txt"]
    (output.work / "notes.txt").unlink()
    (output.work / "model" / "notes.txt").unlink()
    output.finish(EncodingManifest(output.place, RUN, 128))
    assert not output.work.exists()


def test_a_link_in_the_place_of_the_parts_is_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    output = Output(str(tmp_path / "codes.npy"))
    output.work.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="it is a link or belongs to another user"):
        output.make_folders()


def test_a_link_in_the_place_of_the_lock_is_refused(tmp_path):
    (tmp_path / "lock").symlink_to("elsewhere")
    with pytest.raises(InputError, match="lock must be a plain file"), locked(tmp_path, "out"):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_came_under_the_final_name_stays(tmp_path):
    from rankbits import methods
    from rankbits.datasets.blocks import open_rows

    rows = np.random.default_rng(0).standard_normal((9, 6)).astype(np.float32)
    hasher = methods.get("lsh", n_bits=8, random_state=0).fit(rows)
    hasher.save(tmp_path / "model")
    np.save(tmp_path / "x.npy", rows)
    fingerprint = methods.fingerprint(hasher)
    note = Note(8, fingerprint, None)
    job = EncodeJob(str(tmp_path / "model"), fingerprint, str(tmp_path), note, "items", 64)
    part = InputPart(0, 0, 9)
    checksums = {part.name: encode_part(job, open_rows(tmp_path / "x.npy"), part)}
    target = Target(str(tmp_path / "codes.npy"), (part,))
    first = join_parts(job, target, checksums)
    assert join_parts(job, target, checksums) == first  # again, as after a kill
    (tmp_path / "codes.npy").write_text("mine")
    with pytest.raises(InputError, match=r"codes\.npy came there meanwhile"):
        join_parts(job, target, checksums)
    assert (tmp_path / "codes.npy").read_text() == "mine"
