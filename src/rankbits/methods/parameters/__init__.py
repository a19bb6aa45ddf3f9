"""Hyper-parameters of methods: each is declared once, as a field that knows its check.

`fields` has the mechanism and the checks, `common` the parameters that methods of all kinds have,
and `docstrings` puts the entries of shared and inherited parameters into the docstring of a class.
Nothing here imports torch.
"""
