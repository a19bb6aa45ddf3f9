"""Where an encoding writes: a file or folder that must be new, and a folder of parts beside it."""

import os
import re
from pathlib import Path

from rankbits._folders import make_work_folder, remove_own
from rankbits.codes.files import ENDINGS
from rankbits.distributed._manifest import EncodingManifest
from rankbits.errors import InputError

_WORK = re.compile(  # files of a folder of parts, and what a kill leaves of them
    r"lock|manifest\.json|[0-9]{5}-[0-9]{12}\.npy|joined-[^/]*|model/model\.(?:json|safetensors)"
    r"|\.(?:manifest\.json|[0-9]{5}-[0-9]{12}\.npy|joined-[^/]*)\.[0-9a-f]{8}"
    r"|\.model\.(?:[0-9a-f]{8}\.part|old)/.*"
)


class Output:
    """Where codes go: a file or a folder, a place for the manifest, and a folder for parts."""

    def __init__(self, out: str) -> None:
        self.out = out
        self.is_folder = os.path.splitext(out)[1] not in ENDINGS
        path = Path(out)
        self.work = path / ".parts" if self.is_folder else path.parent / f".{path.name}.parts"
        self.place = path if self.is_folder else self.work

    def require_new(self) -> None:
        """Refuse an output that exists, unless it is what an encoding has left."""
        parent = os.path.dirname(os.path.abspath(self.out))
        if not os.path.isdir(parent) or not os.access(parent, os.W_OK):
            raise InputError(
                f"out must lie in an existing folder that can be written, got {self.out}"
            )
        if os.path.exists(self.out) and not (self.is_folder and os.path.isdir(self.out)):
            raise InputError(
                f"out must be new, {self.out} exists already; remove it or choose another name"
            )
        content = sorted(os.listdir(self.out)) if os.path.isdir(self.out) else []
        if content and "manifest.json" not in content and content != [".parts"]:
            raise InputError(
                f"out must be new or empty, {self.out} holds {content[0]}; choose another folder"
            )

    def make_folders(self) -> None:
        """Make the folder of parts, and that of the output if it is one."""
        if self.is_folder:
            Path(self.out).mkdir(exist_ok=True)
        make_work_folder(self.work)

    def finish(self, manifest: EncodingManifest) -> None:
        """Say that all is complete, and remove the parts, but nothing that is not of the run."""
        if self.is_folder:
            manifest.write(is_complete=True)
        remove_own(self.work, _WORK)
