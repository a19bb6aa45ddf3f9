"""Pictures: networks that read them, and how these are trained before the bits.

Nothing outside imports this package. `training.kinds` names its encoders and its readers, and they
are imported when a fit or a saved model asks for one.
"""
