"""Training of encoders by gradients: what every method in `rankbits.methods.deep` shares.

Nothing here knows which method it serves. The loss is a torch module that is plugged in, the
encoder is built from a description of its architecture, and the validation score is a callback.
Importing this package does not import torch; its modules do.
"""
