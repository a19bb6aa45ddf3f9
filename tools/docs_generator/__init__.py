"""The parts of the documentation that are written by a program, from the code itself.

- `commands`: every command with its options
- `tables`: the methods, metrics, kinds of index and protocols
- `cards`: what each method is, learns from and takes
- `architecture`: the picture of the packages
- `reference`: one page for each public package, with every public name
- `pages`: all of them, and where they belong
- `docstrings`: how the site reads docstrings

`make docs-tables` writes them; a test fails if what is committed differs from what is generated.
"""
