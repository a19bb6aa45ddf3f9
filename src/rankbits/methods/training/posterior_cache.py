"""A cache of class posteriors, for fits that share their data: other methods, other code lengths.

    cache = PosteriorCache()
    for n_bits in (16, 32, 64):
        methods.get("talr-ap", n_bits=n_bits, random_state=0, posterior_cache=cache).fit(X, y)
    cache.clear()

It lives in memory and belongs to whoever makes it. A posterior is found again only by a fit that
would train exactly the same one: same rows, labels, seed, sizes and number of threads.
"""

from typing import Any


class PosteriorCache:
    """Trained class posteriors by the fingerprint of what they depend on."""

    def __init__(self) -> None:
        self._posteriors: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._posteriors)

    def get(self, fingerprint: str) -> Any:
        """The posterior of that fingerprint, or None."""
        return self._posteriors.get(fingerprint)

    def put(self, fingerprint: str, posterior: Any) -> None:
        """Keep a trained posterior."""
        self._posteriors[fingerprint] = posterior

    def clear(self) -> None:
        """Forget all posteriors."""
        self._posteriors.clear()

    def __repr__(self) -> str:
        return f"PosteriorCache(n={len(self)})"

    def __deepcopy__(self, memo: dict[int, Any]) -> "PosteriorCache":
        """Itself: a clone of an estimator shares the cache that it was given."""
        return self

    def __reduce__(self) -> tuple[type["PosteriorCache"], tuple[()]]:
        """A pickled estimator takes an empty cache along."""
        return PosteriorCache, ()
