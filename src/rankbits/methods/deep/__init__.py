"""Methods trained by gradients: one file a method, with its loss and its estimator."""
