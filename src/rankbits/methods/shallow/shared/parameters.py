"""Parameters that several methods have: each with its default, its check and its documentation.

class KSH(KernelHasher):
n_anchors: int = N_ANCHORS
gamma: float | None = GAMMA
"""

from rankbits.methods.parameters.fields import (
    choice,
    integer,
    number,
    optional,
    parameter,
    positive,
)
from rankbits.methods.shallow.shared.trees import MAX_DEPTH

CHECK_GAMMA = positive(or_none=True)

KERNEL = parameter(
    None,
    optional(choice("rbf")),
    """
    kernel : {"rbf"} or None, default=None
        Learn hyperplanes in the span of RBF anchors instead of the space of the rows.
    """,
)
N_ANCHORS = parameter(
    300,
    integer(1),
    """
    n_anchors : int, default=300
        Training rows that act as anchors of the kernel, drawn at random; with fewer rows, all of
        them.
    """,
)
GAMMA = parameter(
    None,
    CHECK_GAMMA,
    """
    gamma : float or None, default=None
        Factor in the kernel exp(-gamma |x - a|²); None takes 1 / median |x - a|².
    """,
)
ROTATION = parameter(
    "itq",
    optional(choice("itq")),
    """
    rotation : {"itq"} or None, default="itq"
        ITQ's rotation of the hyperplanes, which brings the training rows nearest to their signs;
        None leaves the hyperplanes as they are, as the paper does.
    """,
)
N_ROWS = parameter(
    5000,
    optional(integer(2)),
    """
    n_rows : int or None, default=5000
        Training rows whose pairs are learned from, drawn at random if there are more; None takes
        all.
    """,
)
N_SIMILAR = parameter(
    100,
    integer(1),
    """
    n_similar : int, default=100
        Similar rows that each row is paired with, drawn at random; all if it has no more.
    """,
)
N_DISSIMILAR = parameter(
    100,
    integer(1),
    """
    n_dissimilar : int, default=100
        Dissimilar rows that each row is paired with, drawn at random; all if it has no more.
    """,
)
N_QUERIES = parameter(
    300,
    integer(1),
    """
    n_queries : int, default=300
        Training rows that act as queries, drawn at random among those that have both relevant and
        irrelevant rows; all of these if there are no more.
    """,
)
N_TREES = parameter(
    200,
    integer(1),
    """
    n_trees : int, default=200
        Trees of a bit.
    """,
)
TREE_DEPTH = parameter(
    4,
    integer(1, MAX_DEPTH),
    """
    max_depth : int, 1 to 8, default=4
        Depth of a tree.
    """,
)
TREE_RATE = parameter(
    0.1,
    number(closed=False),
    """
    learning_rate : float, default=0.1
        Share of what a tree would add to the logit that it does add.
    """,
)
