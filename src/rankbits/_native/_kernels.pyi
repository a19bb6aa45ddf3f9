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
def increments_per_second(n_bins: int, is_joint: bool) -> float: ...
def popcounts_per_second() -> float: ...
def read_bytes_per_second(bytes: int) -> float: ...
