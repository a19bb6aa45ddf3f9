"""Ideas that several methods need, each in a file named for it.

Bases of methods: `learned` (saving what was learned), `linear` (hyperplanes), `kernel_hasher`
(hyperplanes in the space of RBF anchors), `waves` (signs of cosines), `symbols` (positions of
largest values), `tree_hasher` (boosted trees) and `unit_hasher` (rows at length 1).

The others are values and functions: `parameters` that several methods have; directions of rows
(`principal`, `eigenproblems`, `rotation`, `units`, `within_classes`); groups and neighbors
(`groups`, `smoothing`, `anchor_graph`, `kernels`); pairs and lists (`pair_sampling`, `pair_losses`,
`similarity`, `ranking_lists`, `violated_rankings`); how bits are found (`bitwise`, `block_cuts`,
`descent`, `trees`); and `accelerated`, `conjugate_gradients`, `progress`.
"""
