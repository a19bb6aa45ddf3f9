"""Items whose bits are chosen together, by coordinate descent on how far their decoded row is off.

A plane decides its bit alone. Here a code b stands for the row m + U b, and an item has the code
whose row is near to x, errors along x itself counting most, since the queries that should find x
point its way [1]:

    E(b) = |r|² + η (x'r)²        r = x - m - U b

Given the other bits, bit k is best as the sign of its margin. The other choice makes E larger by 4
times the size of the margin:

    v_k = u_k'(r + u_k b_k) + η a_k (x'r + a_k b_k)        a = U'x

A sweep sets every bit to the sign of its margin in turn, so E never rises. A query q has the
weights U'q: then <U'q, b> is q'x for the decoded row, but for q'm, which all items share.

Notation:
    x  rows of length 1    m  their mean    U  (d, b) decoder    B  (n, b) codes of -1 and +1

[1] R. Guo et al., "Accelerating large-scale inference with anisotropic vector quantization", ICML
2020, whose loss this is.
"""

from dataclasses import dataclass

import numpy as np

from rankbits.methods.shallow.shared.conjugate_gradients import conjugate_gradients

ALONG = 3.0  # η: an error along the row counts 1 + η times
N_SWEEPS = 4  # of an item that is encoded; few bits change after the third
_TURNS, _TURN_SWEEPS = 8, 2
_RIDGE = 1.0
_CG_STEPS = 25


@dataclass
class Decoder:
    """What codes stand for, and where the search for a code starts."""

    mean: np.ndarray  # m (d,)
    planes: np.ndarray  # U (d, b)
    start_planes: np.ndarray  # (d, b): the first bits are the signs of x'start_planes
    start_offsets: np.ndarray  # (b,): and of these


def learn_decoder(units: np.ndarray, first_codes: np.ndarray) -> Decoder:
    """The decoder that is best for its own codes, in turns from first codes of -1 and +1.

    Every turn fits U to the codes, by least squares on E, and the codes to U, by sweeps.
    """
    rows = units.astype(np.float32)
    mean = rows.mean(axis=0)
    codes = first_codes.astype(np.float32)
    for _ in range(_TURNS):
        planes = fit_planes(rows, mean, codes)
        codes, _ = descend(rows, mean, planes, codes, _TURN_SWEEPS)
    start_planes, start_offsets = regress_codes(units, codes)
    return Decoder(mean.astype(np.float64), planes.astype(np.float64), start_planes, start_offsets)


def descend(
    rows: np.ndarray, mean: np.ndarray, planes: np.ndarray, codes: np.ndarray, n_sweeps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Codes after so many sweeps, and the margins of their bits; fewer if no bit changes.

    `pull` is U'r and `along` is x'r of every row, both kept up to date with every bit that changes.
    """
    codes, gram, shares = codes.copy(), planes.T @ planes, rows @ planes
    pull = shares - mean @ planes - codes @ gram
    along = (rows * (rows - mean)).sum(axis=1) - (shares * codes).sum(axis=1)
    for _ in range(n_sweeps):
        n_changed = 0
        for k in range(codes.shape[1]):
            margin = pull[:, k] + ALONG * shares[:, k] * along
            margin += (gram[k, k] + ALONG * shares[:, k] ** 2) * codes[:, k]
            bits = np.where(margin > 0, 1, -1).astype(codes.dtype)
            changed = np.flatnonzero(bits != codes[:, k])
            change = bits[changed] - codes[changed, k]
            pull[changed] -= change[:, None] * gram[k]
            along[changed] -= change * shares[changed, k]
            codes[changed, k] = bits[changed]
            n_changed += len(changed)
        if n_changed == 0:
            break
    margins = pull + ALONG * shares * along[:, None] + (gram.diagonal() + ALONG * shares**2) * codes
    return codes, margins


def fit_planes(rows: np.ndarray, mean: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The decoder U with the least sum of E for given codes, by conjugate gradients.

    They start at the least squares of |r|² alone. A small ridge keeps bits that are equal in all
    rows, or in no other way tell rows apart, from large entries.
    """
    centered = rows - mean
    products = codes.T @ codes + _RIDGE * np.eye(codes.shape[1], dtype=codes.dtype)

    def apply(planes: np.ndarray) -> np.ndarray:
        along = ((rows @ planes) * codes).sum(axis=1)
        result: np.ndarray = planes @ products + ALONG * (rows * along[:, None]).T @ codes
        return result

    along = (rows * centered).sum(axis=1)
    target = centered.T @ codes + ALONG * (rows * along[:, None]).T @ codes
    start: np.ndarray = np.linalg.solve(products, codes.T @ centered).T
    return conjugate_gradients(apply, target, start, _CG_STEPS).astype(rows.dtype)


def regress_codes(rows: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Planes and offsets whose values are nearest to the codes, by least squares."""
    mean, middle = rows.mean(axis=0), codes.mean(axis=0, dtype=np.float64)
    centered = rows - mean
    gram = centered.T @ centered
    ridge = 1e-5 * np.trace(gram) * np.eye(len(gram))
    planes: np.ndarray = np.linalg.solve(gram + ridge, centered.T @ (codes - middle))
    return planes, middle - mean @ planes
