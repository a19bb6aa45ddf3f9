"""A method in one file: what a new file in `methods/shallow` has to contain, and no more."""

import numpy as np

from rankbits.methods.shallow.shared.linear import LinearHasher


class MedianSign(LinearHasher):
    """Bit k says whether feature k exceeds its training median."""

    def fit(self, X, y=None):
        rows = self._training_rows(X, y)
        self.mean_ = np.median(rows, axis=0)
        self.planes_ = np.eye(rows.shape[1], self.n_bits)
        return self
