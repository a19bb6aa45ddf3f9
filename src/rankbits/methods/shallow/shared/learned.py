"""Saving and loading what a method learned: a method declares its arrays and facts, no more."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar

import numpy as np

from rankbits import _check
from rankbits.errors import FileFormatError
from rankbits.methods.base import BaseHasher
from rankbits.methods.parameters.fields import check_parameters, cleaned

Shapes = dict[str, tuple[str, ...]]
_LARGEST = 1e150


class ArrayHasher(BaseHasher):
    """A method that has learned arrays of doubles or integers, and facts that JSON can hold.

    The array or fact `name` is the attribute `name_`, declared as `learned(...)` or `fact(...)`.
    The shape of an array is given in letters: one letter stands for one size in all of them, b for
    the bits of a code, d for the columns of what the arrays are applied to, a number for itself.
    Arrays are float64, or int64. Numbers are at most 1e150, so that their squares are numbers too,
    but in the arrays named in `_unbounded`, which are only compared.

    Parameters are checked before `fit` begins, which then reads them as the checks return them.
    """

    _arrays: ClassVar[Shapes] = {}
    _integers: ClassVar[tuple[str, ...]] = ()
    _unbounded: ClassVar[tuple[str, ...]] = ()
    _facts: ClassVar[dict[str, type]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = {name.removesuffix("_"): value for name, value in cls._attributes.items()}
        arrays = {name: value for name, value in own.items() if value.shape}
        cls._arrays = cls._arrays | {name: value.shape for name, value in arrays.items()}
        cls._integers += tuple(name for name, value in arrays.items() if value.dtype is np.int64)
        cls._facts = cls._facts | {name: v.kind for name, v in own.items() if v.kind is not None}
        if "fit" in vars(cls):
            cls.fit = _check_first(cls.fit)  # type: ignore[method-assign]

    @property
    def n_bits_(self) -> int:
        """Length of the codes of the fitted method: the size b of what it has learned."""
        for name, shape in self._arrays.items():
            if "b" in shape:
                return int(getattr(self, f"{name}_").shape[shape.index("b")])
        return super().n_bits_

    def _n_columns(self) -> int:
        """The size d: columns of what the arrays are applied to."""
        return int(self.n_features_in_)

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays = {name: getattr(self, f"{name}_") for name in self._arrays}
        return arrays, {name: getattr(self, f"{name}_") for name in self._facts}

    def _restore(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        check_parameters(self)
        sizes = {"d": self._n_columns()}
        check_arrays(arrays, self._arrays, sizes, self._integers, self._unbounded)
        check_facts(facts, self._facts)
        for name, value in (*arrays.items(), *facts.items()):
            setattr(self, f"{name}_", value)


def _check_first(fit: Callable[..., Any]) -> Callable[..., Any]:
    """A `fit` whose parameters are checked before it does anything."""

    @wraps(fit)
    def checked_fit(hasher: ArrayHasher, *args: Any, **kwargs: Any) -> Any:
        with cleaned(hasher):
            return fit(hasher, *args, **kwargs)

    return checked_fit


def check_arrays(
    arrays: dict[str, np.ndarray],
    shapes: Shapes,
    sizes: dict[str, int],
    integers: tuple[str, ...] = (),
    unbounded: tuple[str, ...] = (),
) -> None:
    """Refuse arrays that are not exactly these: finite, of these shapes and types, none empty.

    `sizes` has the letters whose size is known beforehand.

    >>> check_arrays({"mean": np.zeros(3)}, {"mean": ("d",)}, {"d": 3})
    """
    if set(arrays) != set(shapes):
        raise FileFormatError(
            f"the model must hold the arrays {', '.join(shapes)}; it holds "
            f"{_check.describe_names(sorted(arrays)) or 'none'}"
        )
    sizes = dict(sizes)
    sizes |= {size: int(size) for shape in shapes.values() for size in shape if size.isdigit()}
    for name, letters in shapes.items():
        array = arrays[name]
        fits = array.ndim == len(letters) and all(
            sizes.setdefault(letter, size) == size
            for letter, size in zip(letters, array.shape, strict=True)
        )
        dtype = np.dtype(np.int64 if name in integers else np.float64)
        if not fits or array.dtype != dtype or not np.isfinite(array).all():
            shape = ", ".join(str(sizes.get(letter, letter)) for letter in letters)
            raise FileFormatError(
                f"the model's {name} must be finite {dtype} of shape ({shape}), "
                f"got {array.dtype} of shape {array.shape}"
            )
        if array.size == 0:
            raise FileFormatError(f"the model's {name} must not be empty, got shape {array.shape}")
        if name not in unbounded and dtype.kind == "f" and np.abs(array).max() > _LARGEST:
            raise FileFormatError(f"the model's {name} must have numbers of at most {_LARGEST:g}")


def check_facts(facts: dict[str, Any], types: dict[str, type]) -> None:
    """Refuse facts that are not exactly these, each of its type."""
    if {name: type(fact) for name, fact in facts.items()} != types:
        expected = ", ".join(f"{name} ({kind.__name__})" for name, kind in types.items())
        raise FileFormatError(f"the model's facts must be {expected or 'none'}; got {facts!r:.60}")
