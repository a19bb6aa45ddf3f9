import numpy as np

def dispatch() -> str: ...
def dispatch_levels() -> list[str]: ...
def use_dispatch(name: str) -> bool: ...
def count_classes(
    queries: np.ndarray,
    items: np.ndarray,
    query_class: np.ndarray,
    item_class: np.ndarray,
    counts: np.ndarray,
    n_threads: int = 1,
) -> None: ...
def count_levels(
    queries: np.ndarray,
    items: np.ndarray,
    levels: np.ndarray,
    counts: np.ndarray,
    n_threads: int = 1,
) -> None: ...
def count_tags(
    queries: np.ndarray,
    items: np.ndarray,
    starts: np.ndarray,
    tags: np.ndarray,
    rows: np.ndarray,
    counts: np.ndarray,
    n_threads: int = 1,
) -> None: ...
def largest_counts(
    queries: np.ndarray,
    codes: np.ndarray,
    n_items: np.ndarray,
    largest: np.ndarray,
    n_threads: int = 1,
) -> None: ...
def distances(
    queries: np.ndarray, items: np.ndarray, out: np.ndarray, n_threads: int = 1
) -> None: ...

class SoftHistogram32:
    has_negative_level: bool
    def counts(self, out: np.ndarray) -> None: ...
    def ap(self, form: int, relevance: np.ndarray, values: np.ndarray) -> None: ...
    def ndcg(
        self, form: int, gains: np.ndarray, discount_sums: np.ndarray, values: np.ndarray
    ) -> None: ...
    def pull_values(
        self, grad_values: np.ndarray, grad_queries: np.ndarray, grad_items: np.ndarray
    ) -> None: ...
    def pull_counts(
        self, grad_counts: np.ndarray, grad_queries: np.ndarray, grad_items: np.ndarray
    ) -> None: ...

class SoftHistogram64(SoftHistogram32): ...  # the same methods, in double precision

def soft_histogram(
    queries: np.ndarray,
    items: np.ndarray,
    levels: np.ndarray,
    own: np.ndarray,
    n_levels: int,
    n_bins: int,
    delta: float,
    is_square: bool,
    keeps_cells: bool,
    n_threads: int = 1,
) -> SoftHistogram32 | SoftHistogram64: ...
def are_within(codes: np.ndarray, limit: float) -> bool: ...
def level_range(levels: np.ndarray) -> tuple[int, int]: ...
def ap_of_counts(
    counts: np.ndarray,
    level_counts: np.ndarray,
    form: int,
    values: np.ndarray,
    grads: np.ndarray,
) -> None: ...
def polygammas(x: np.ndarray, out: np.ndarray) -> None: ...
def to_planes(packed: np.ndarray, planes: np.ndarray) -> None: ...
def from_planes(planes: np.ndarray, rows: np.ndarray, packed: np.ndarray) -> None: ...
def scan(
    planes: np.ndarray,
    n: int,
    n_bits: int,
    allowed: np.ndarray,
    queries: np.ndarray,
    k: int,
    radius: int,
    is_complete: bool,
    n_threads: int = 1,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def scan_real(
    planes: np.ndarray,
    n: int,
    n_bits: int,
    allowed: np.ndarray,
    weights: np.ndarray,
    correction: np.ndarray,
    scores: np.ndarray,
    rows: np.ndarray,
    counts: np.ndarray,
    n_threads: int = 1,
) -> None: ...

class Mih:
    def __init__(
        self,
        planes: np.ndarray,
        n: int,
        n_bits: int,
        copies: bool = True,
        n_threads: int = 1,
    ) -> None: ...
    @staticmethod
    def cut(n: int, width: int, copies: bool = True) -> tuple[int, int]: ...
    @staticmethod
    def bytes_needed(n: int, width: int, copies: bool = True) -> int: ...
    def search(
        self,
        queries: np.ndarray,
        n_bits: int,
        allowed: np.ndarray,
        k: int,
        radius: int,
        is_complete: bool,
        budget: int,
        n_threads: int = 1,
    ) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray, int]: ...

class Lists:
    def __init__(
        self,
        planes: np.ndarray,
        n_bits: int,
        starts: np.ndarray,
        rows: np.ndarray,
        n_rows: int,
        centres: np.ndarray,
        n_centres: int,
    ) -> None: ...
    def search(
        self,
        queries: np.ndarray,
        allowed: np.ndarray,
        k: int,
        radius: int,
        is_complete: bool,
        n_probes: int,
        n_threads: int = 1,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...

def score_vectors(
    source: np.ndarray,
    rows: np.ndarray,
    query_numbers: np.ndarray,
    queries: np.ndarray,
    metric: int,
    scores: np.ndarray,
    n_threads: int = 1,
) -> int: ...
def score_bytes(
    if_set: np.ndarray,
    if_clear: np.ndarray,
    masks: np.ndarray,
    codes: np.ndarray,
    offsets: np.ndarray,
    scores: np.ndarray,
    n_threads: int = 1,
) -> None: ...
def score_tables(
    tables: np.ndarray,
    codes: np.ndarray,
    offsets: np.ndarray,
    scores: np.ndarray,
    n_threads: int = 1,
) -> None: ...
def improve_codes(
    products: np.ndarray,
    shares: np.ndarray,
    squares: np.ndarray,
    along: float,
    changes: np.ndarray,
    n_sweeps: int,
    entries: np.ndarray,
    n_threads: int = 1,
) -> None: ...
def best_scores(
    scores: np.ndarray,
    ids: np.ndarray,
    offsets: np.ndarray,
    best: np.ndarray,
    best_ids: np.ndarray,
    n_threads: int = 1,
) -> bool: ...
def multiply_rows(
    rows: np.ndarray,
    queries: np.ndarray,
    products: np.ndarray,
    squares: np.ndarray,
    n_threads: int = 1,
) -> None: ...
def tabulate_ties(
    marks: np.ndarray,
    positions: np.ndarray,
    counts: np.ndarray,
    n_items: int,
    depth: int,
    table: np.ndarray,
) -> int: ...

class RankedTies:
    def __init__(self, marks: np.ndarray, starts: np.ndarray, counts: np.ndarray) -> None: ...
    def add_block(
        self,
        distances: np.ndarray,
        slack: np.ndarray,
        is_left_out: np.ndarray,
        is_open: np.ndarray,
        n_threads: int = 1,
    ) -> int: ...
    def add_pairs(self, queries: np.ndarray, distances: np.ndarray) -> None: ...

def watch_mapping(bytes: np.ndarray, file: int) -> int: ...
def look_at_mapping(watch: int) -> int: ...
def accept_mapping(watch: int) -> None: ...
def release_mapping(watch: object) -> None: ...
