"""Per-query values in a Parquet file: a column `query`, and one column for each metric."""

import os

import numpy as np

from rankbits._check import extra
from rankbits._files import write_atomically
from rankbits.datasets import load_columns
from rankbits.errors import FileFormatError
from rankbits.evaluation._result import Evaluation


def save_per_query(evaluation: Evaluation, path: str | os.PathLike[str]) -> None:
    """Write the values of each query; an undefined value is null.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation whose `per_query` values are written, one column for each metric.
    path : str or PathLike
        Path of the Parquet file, in an existing folder. A file that is already there is replaced.
    """
    pyarrow = extra("pyarrow", "writing .parquet", "files")
    parquet = extra("pyarrow.parquet", "writing .parquet", "files")
    columns = {"query": np.arange(evaluation.n_queries)}
    for name, values in evaluation.per_query.items():
        columns[name] = pyarrow.array(values, mask=np.isnan(values))
    with write_atomically(path) as file:
        parquet.write_table(pyarrow.table(columns), file)


def load_per_query(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read the values back, NaN where undefined; a file that is not of this kind is refused.

    Parameters
    ----------
    path : str or PathLike
        Path of a Parquet file that `save_per_query` wrote.

    Returns
    -------
    per_query : dict from str to ndarray of float64, shape (queries,)
        The values of each metric, by its name.
    """
    columns = load_columns(path)
    queries = columns.pop("query", None)
    if queries is None or not columns or not np.array_equal(queries, np.arange(len(queries))):
        raise FileFormatError(
            f"{path} is not a file of per-query values: it must have a column 'query' that counts "
            "from 0 and a column for each metric; write one with rankbits evaluate --per-query"
        )
    for name, values in columns.items():
        if values.dtype.kind != "f":
            raise FileFormatError(f"{path} must hold numbers, column {name!r} is {values.dtype}")
    return columns
