"""The former name of `supervision`, for the methods that are trained by gradients."""

from rankbits.methods.supervision import Supervision, check_contrast, supervise

__all__ = ["Supervision", "check_contrast", "supervise"]
