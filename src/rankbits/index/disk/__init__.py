"""Collections on disk: a folder with a SQLite database and immutable segment files.

- `layout`: what lies in the folder, and what a failure is called
- `lock`: the one writer
- `building`: parts in files or in the database
- `connection`: a connection that trusts nothing in the file
- `segment_file`: a segment in a file, with checksums, mapped
- `tables`: the rows of the database
- `database`: reads a state in one transaction and commits the next in another
- `writing`: whole collections, written in one step
- `check`: what a collection says about itself, and whether it is sound
"""

from rankbits.index.disk.database import Database
from rankbits.index.disk.writing import (
    read_collection,
    require_target,
    write_collection,
)

__all__ = [
    "Database",
    "read_collection",
    "require_target",
    "write_collection",
]
