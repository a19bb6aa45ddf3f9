"""The former name of `shallow.rotation`, for the methods that are trained by gradients."""

from rankbits.methods.shallow.rotation import learn_rotation as least_loss_rotation
from rankbits.methods.shallow.rotation import random_rotation

__all__ = ["least_loss_rotation", "random_rotation"]
