"""Methods that are not trained by gradients, one file each; none of them imports torch.

What several of them share is written once: `linear` (hyperplanes), `kernels` and `kernel_hasher`
(hyperplanes in the space of RBF anchors), `rotation` (ITQ's loop), `principal` (principal
directions), `eigenproblems`, `groups` (k-means), `anchor_graph`, `waves` (signs of cosines),
`symbols` (positions of largest values), `pair_sampling`, `pair_losses` and `block_cuts` (bits from
pairs of rows), `trees` and `tree_hasher` (boosted trees), and `learned` (saving what was learned).
"""
