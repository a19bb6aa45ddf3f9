"""Schedules: how the learning rate and the slope α move with the progress of a run, t in [0, 1].

They are functions of t alone, so that a resumed run needs nothing but its step.
"""

import math

_DROPS = (0.5, 0.75)  # where "step" divides by ten
_RISE = 0.3  # share of "one-cycle" spent rising
_START, _END = 1 / 25, 1e-4  # of the peak, where "one-cycle" begins and ends


def rate_factor(schedule: str, progress: float, warm_up: float = 0.0) -> float:
    """What the learning rate is multiplied by.

    "constant": 1; "cosine": (1 + cos πt)/2; "step": a tenth at t = 1/2 and again at 3/4;
    "one-cycle": a cosine from 1/25 up to 1 at t = 0.3, then down to 1e-4. A warm-up multiplies the
    first `warm_up` share of the run by a line that rises from 0, exclusive, to 1.

    >>> [rate_factor("step", t) for t in (0.0, 0.5, 1.0)]
    [1.0, 0.1, 0.01]
    """
    factor = _factor(schedule, progress)
    if progress < warm_up:
        factor *= max(progress / warm_up, 1e-3)
    return factor


def relaxation_slope(alpha: float, alpha_end: float | None, progress: float) -> float:
    """α at t: constant, or growing geometrically to `alpha_end` (continuation).

    >>> [round(relaxation_slope(0.5, 8.0, t), 3) for t in (0.0, 0.5, 1.0)]
    [0.5, 2.0, 8.0]
    """
    if alpha_end is None:
        return alpha
    return float(alpha * (alpha_end / alpha) ** progress)


def _factor(schedule: str, t: float) -> float:
    if schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * t))
    if schedule == "step":
        return round(0.1 ** sum(t >= drop for drop in _DROPS), 12)
    if schedule == "one-cycle":
        if t < _RISE:
            return 1 - (1 - _START) * 0.5 * (1 + math.cos(math.pi * t / _RISE))
        return _END + (1 - _END) * 0.5 * (1 + math.cos(math.pi * (t - _RISE) / (1 - _RISE)))
    return 1.0
