"""A look at the vectors before anything is learned: what will be hard, and what will matter.

Norms and duplicates are those of all items; everything else is measured on a sample of them.
"""

from typing import Any

import numpy as np

from rankbits.codes import BinaryCodes
from rankbits.compress._task import Task
from rankbits.evaluation import evaluate, nearest_vectors

_ROWS = 5000
_QUERIES = 200
_NEIGHBORS = 10
_MUCH = 0.02  # share of the squared length, or of the variance, that is worth a step
_HUBS = 2.0  # skewness of the numbers of lists an item is in; 0.5 to 1 is usual


def diagnose(task: Task, n_bytes: tuple[int, ...], seed: int) -> dict[str, Any]:
    """Numbers about the vectors and what they mean in words, ready for JSON."""
    rng = np.random.default_rng((seed, 4))
    rows = np.sort(rng.permutation(len(task.items))[:_ROWS])
    sample = np.asarray(task.items[rows], np.float64)
    facts = {**_norms(task), **_spread(sample), "hubness": hubness(sample, task.similarity)}
    facts["random_bits"] = random_bits(sample, n_bytes, task.similarity, rng)
    return {**facts, "sample": len(sample), "words": _words(facts)}


def hubness(sample: np.ndarray, similarity: str) -> float:
    """Skewness of how many lists of ten neighbors an item of the sample is in.

    M. Radovanović, A. Nanopoulos, M. Ivanović, "Hubs in space", JMLR 2010.
    """
    asking = np.arange(min(1000, len(sample)))
    k = min(_NEIGHBORS, len(sample) - 1)
    lists = nearest_vectors(sample[asking], sample, k, similarity, exclude_self=asking)
    counts = np.bincount(lists.ravel(), minlength=len(sample)).astype(float)
    deviations = counts - counts.mean()
    spread = counts.std()
    return float((deviations**3).mean() / spread**3) if spread else 0.0


def random_bits(
    sample: np.ndarray, n_bytes: tuple[int, ...], similarity: str, rng: np.random.Generator
) -> dict[str, float]:
    """Share of the float top 10 that random hyperplanes and real-valued queries find again.

    It is measured within the sample, so it is what to expect of a collection of that size.
    """
    queries = np.arange(min(_QUERIES, len(sample)))
    k = min(_NEIGHBORS, len(sample) - 1)
    reference = nearest_vectors(sample[queries], sample, k, similarity, exclude_self=queries)
    centered = sample - sample.mean(axis=0)
    shares = {}
    for n in n_bytes:
        planes = rng.standard_normal((sample.shape[1], 8 * n))
        logits = centered @ planes
        scores = evaluate(
            None,
            BinaryCodes.from_logits(logits),
            None,
            f"overlap@{k}",
            query_weights=logits[queries],
            reference=reference,
            exclude_self=queries,
        )
        shares[str(n)] = scores.mean[f"overlap@{k}"]
    return shares


def _norms(task: Task) -> dict[str, Any]:
    norms = task.profile.norms
    low, middle, high = np.quantile(norms, [0.01, 0.5, 0.99])
    return {
        "norms": {"median": float(middle), "low": float(low), "high": float(high)},
        "is_unit": bool(abs(low - 1) < 0.01 and abs(high - 1) < 0.01),
        "zeros": task.profile.n_zero,
        "duplicates": task.profile.n_duplicates,
    }


def _spread(sample: np.ndarray) -> dict[str, Any]:
    """How the variance lies: in the mean, in single coordinates, in few directions."""
    mean, variances = sample.mean(axis=0), sample.var(axis=0)
    total = np.square(sample).sum(axis=1).mean()
    eigenvalues = np.linalg.eigvalsh(np.cov(sample.T, bias=True))[::-1].clip(min=0)
    sorted_variances = np.sort(variances)[::-1]
    half = max(1, len(variances) // 4)
    return {
        "mean_share": float(np.square(mean).sum() / total),
        "constant_coordinates": int((variances <= 1e-12 * variances.max()).sum()),
        "variance_ratio": float(sorted_variances[0] / max(np.median(variances), 1e-300)),
        "rank": int((eigenvalues > 1e-8 * eigenvalues[0]).sum()),
        "effective_rank": float(eigenvalues.sum() ** 2 / np.square(eigenvalues).sum()),
        "top_quarter_of_directions": float(eigenvalues[:half].sum() / eigenvalues.sum()),
        "top_quarter_of_coordinates": float(sorted_variances[:half].sum() / variances.sum()),
    }


def _words(facts: dict[str, Any]) -> list[str]:
    """What the numbers mean for codes, one sentence each."""
    norms, words = facts["norms"], []
    if facts["is_unit"]:
        words.append("All vectors have length 1: cosine, inner product and distance rank alike.")
    else:
        words.append(
            f"Lengths go from {norms['low']:.3g} to {norms['high']:.3g} (1st to 99th percentile); "
            "codes keep directions, so ranking by inner product or distance loses what lengths say."
        )
    verb = "matters" if facts["mean_share"] > _MUCH else "matters little"
    words.append(
        f"The mean of the vectors has {facts['mean_share']:.1%} of their squared length: centering "
        f"{verb}."
    )
    gain = facts["top_quarter_of_directions"] - facts["top_quarter_of_coordinates"]
    verb = "matters" if gain > 5 * _MUCH else "matters little"
    words.append(
        f"A quarter of the directions has {facts['top_quarter_of_directions']:.0%} of the "
        f"variance, a quarter of the coordinates {facts['top_quarter_of_coordinates']:.0%}: "
        f"rotation {verb}."
    )
    words.append(
        f"The variance is spread as over {facts['effective_rank']:.0f} equal directions, of "
        f"{facts['rank']} that are used at all: fewer bits than that must share directions."
    )
    verb = "some items are in very many lists" if facts["hubness"] > _HUBS else "no strong hubs"
    words.append(f"Hubness is {facts['hubness']:.1f}: {verb}.")
    if facts["duplicates"]:
        words.append(
            f"{facts['duplicates']:,} items are copies of others; no code can tell copies apart."
        )
    shares = ", ".join(f"{share:.0%} at {n} bytes" for n, share in facts["random_bits"].items())
    words.append(
        f"Random bits find this share of the float top 10 within a sample of the items: {shares}. "
        "What is learned should find more."
    )
    return words
