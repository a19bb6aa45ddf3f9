"""The trainer under every gradient method, with its encoders, batches, schedules and checkpoints.

Nothing here knows which method it serves: the loss is a torch module that is plugged in, the
encoder is built from a description, and the validation score comes by callback.
"""
