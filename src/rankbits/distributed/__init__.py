"""Beyond one machine: encode, count and search on a Ray cluster, with the bits of one machine.

- `encode`: files of rows become files of codes, one task for each range of rows.
- `count_ties`: the tie histogram of a database in shards, for `rankbits.evaluate_histogram`.
- `index`: a collection cut into shards, each held by processes of its own, searched as one;
  `create_index` makes one.
- `connect`, `cluster_info`: the cluster, or the cores of this machine.

Files must lie where every machine of the cluster can read them under the same path.
"""

from rankbits.distributed._cluster import cluster_info, connect
from rankbits.distributed._count import count_ties
from rankbits.distributed._encode import Encoding, encode
from rankbits.distributed._index import ShardedIndex, index
from rankbits.distributed._layout import LocalShards, create_index, is_sharded
from rankbits.distributed._owners import even_bounds
from rankbits.distributed._shards import FileShard, Shard, ShardFacts

__all__ = [
    "Encoding",
    "FileShard",
    "LocalShards",
    "Shard",
    "ShardFacts",
    "ShardedIndex",
    "cluster_info",
    "connect",
    "count_ties",
    "create_index",
    "encode",
    "even_bounds",
    "index",
    "is_sharded",
]
