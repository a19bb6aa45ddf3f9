"""Methods that are not trained by gradients, one file each; none of them imports torch.

What several of them share is written once: `linear` (hyperplanes), `kernels` and `kernel_hasher`
(hyperplanes in the space of RBF anchors), `rotation` (ITQ's loop), `principal` (principal
directions), `eigenproblems`, `groups` (k-means), `anchor_graph`, `waves` (signs of cosines),
`symbols` (positions of largest values), and `learned` (saving what was learned).
"""
