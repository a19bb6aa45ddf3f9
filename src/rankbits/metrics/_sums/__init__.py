"""Sums over ties that several metrics share; nothing here knows the name of a metric."""
