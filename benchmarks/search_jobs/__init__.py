"""The jobs of `search.py`, one module for each question."""
