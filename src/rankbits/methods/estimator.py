"""The part of scikit-learn's contract that every method inherits, with the types of its methods.

scikit-learn ships no types. A class that derives from it directly is one of which a type checker
accepts any constructor call and any attribute; derived from this one, it is checked.
"""

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    import numpy as np

    class Estimator:
        """What methods use of scikit-learn's base classes."""

        n_features_in_: int
        feature_names_in_: np.ndarray

        @classmethod
        def _get_param_names(cls) -> list[str]: ...

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """The parameters by name."""

        def set_params(self, **params: Any) -> Self:
            """Set parameters by name."""

        def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> np.ndarray:
            """Fit to X and y, then transform X."""

        def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
            """Names of the columns of `transform`."""

        def set_output(self, *, transform: str | None = None) -> Self:
            """Choose the container that `transform` returns."""

        def __sklearn_tags__(self) -> Any: ...

else:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

    class Estimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
        """scikit-learn's base classes of a transformer, in their order."""
