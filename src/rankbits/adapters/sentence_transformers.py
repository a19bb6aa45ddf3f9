"""sentence-transformers: a hasher as the last module of a model, and its binary embeddings read.

A SentenceTransformer is a list of modules. With a hasher at its end, `encode_document` gives the
bits of items as -1 and +1, and `encode_query` the weights of queries. So the inner product of both
is the score of `search_real`, and precision="ubinary" packs the bits as `hasher.transform` does.
"""

import os
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from rankbits import _check, methods
from rankbits.adapters._model_folders import EXTRA, load_with_code, load_without_code
from rankbits.codes import BinaryCodes
from rankbits.errors import InputError

__all__ = ["CodeModule", "append_hasher", "load_model", "read_codes"]

_FEATURE = "sentence_embedding"


class CodeModule(nn.Module):
    """A fitted hasher as a module of sentence-transformers; `append_hasher` puts it to the end.

    Parameters
    ----------
    hasher : fitted method of rankbits
        It reads what the modules before it give. Its numbers are not trained further.
    """

    forward_kwargs: ClassVar[set[str]] = {"task"}  # encode_query and encode_document give it

    def __init__(self, hasher: Any) -> None:
        super().__init__()
        self.hasher = hasher

    def forward(self, features: dict[str, Any], task: str | None = None) -> dict[str, Any]:
        """Replace the embedding: by weights if task is "query", else by bits of -1 and +1.

        Parameters
        ----------
        features : dict
            What the module before gives; its "sentence_embedding" is read.
        task : str or None, default=None
            "query", "document" or None, as `encode_query`, `encode_document` and `encode` give it.
        """
        rows = features[_FEATURE]
        values = self._encode(rows.detach().float().cpu().numpy(), task)
        return {**features, _FEATURE: values.to(rows.device)}

    def _encode(self, rows: np.ndarray, task: str | None) -> Tensor:
        if task == "query":
            return torch.from_numpy(self.hasher.project_queries(rows).astype(np.float32))
        return torch.from_numpy(self.hasher.encode(rows).bits().astype(np.float32) * 2 - 1)

    def get_embedding_dimension(self) -> int:
        """Length of what `forward` gives."""
        return int(self.hasher.n_bits_)

    def save(self, output_path: str, *args: Any, **options: Any) -> None:
        """Write the model of rankbits into the folder of this module.

        Parameters
        ----------
        output_path : str
            Folder of the module.
        args, options : ignored
            What sentence-transformers gives beside it.
        """
        self.hasher.save(os.path.join(output_path, "model"))

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **options: Any) -> Self:
        """Read the module from a saved SentenceTransformer in a local folder.

        Parameters
        ----------
        model_name_or_path : str
            Folder of the SentenceTransformer.
        subfolder : str, default=""
            Folder of the module in it.
        options : ignored
            What sentence-transformers gives beside it.
        """
        return cls(methods.load(os.path.join(model_name_or_path, subfolder, "model")))


def append_hasher(model: Any, hasher: Any) -> Any:
    """A SentenceTransformer that ends with a hasher; the given one stays as it is.

    Parameters
    ----------
    model : sentence_transformers.SentenceTransformer
        The model whose embeddings the hasher was fitted on. Both share their modules.
    hasher : fitted method of rankbits
        It must read as many features as the model gives.

    Returns
    -------
    model : sentence_transformers.SentenceTransformer
        Its `encode` and `encode_document` give bits of -1 and +1 (precision="ubinary" packs them),
        its `encode_query` gives weights. It is saved as others are, and `load_model` loads it.
    """
    package = _check.extra("sentence_transformers", "append_hasher", EXTRA)
    if not isinstance(model, package.SentenceTransformer):
        raise InputError(f"model must be a SentenceTransformer, got {_check.describe(model)}")
    if not hasattr(hasher, "n_features_in_"):
        raise InputError(
            f"hasher must be a fitted method of rankbits, got {_check.describe(hasher)}"
        )
    if "bits" not in hasher.query_kinds:
        raise InputError(
            f"hasher must give queries a weight for each bit, and {type(hasher).__name__} does "
            "not: its scores are no dot product of two embeddings; search its codes with "
            "index.search_real(hasher.project_queries(embeddings), k)"
        )
    n_features = model.get_embedding_dimension()
    if n_features is not None and n_features != hasher.n_features_in_:
        raise InputError(
            f"hasher must read the {n_features} features that model gives, it was fitted on "
            f"{hasher.n_features_in_}"
        )
    return package.SentenceTransformer(
        modules=[*model.children(), CodeModule(hasher)],
        device=str(model.device),
        prompts=model.prompts,
        default_prompt_name=model.default_prompt_name,
        similarity_fn_name="dot",
    )


def load_model(folder: str | os.PathLike[str], *, trust_code: bool = False) -> Any:
    """The SentenceTransformer of a local folder, with the hasher at its end if it has one.

    No code of the folder runs: its modules must be those of sentence-transformers, and pickled
    weights (pytorch_model.bin) and .py files are not read.

    Parameters
    ----------
    folder : str or path-like
        Folder that `save` of a SentenceTransformer wrote.
    trust_code : bool, default=False
        Whether the folder may bring modules of its own and pickles. They run with all rights of
        this process, so set it only for a folder whose maker you trust.

    Returns
    -------
    model : sentence_transformers.SentenceTransformer
        On the CPU.
    """
    if trust_code:
        return load_with_code(folder)
    model, place = load_without_code(folder, f"{CodeModule.__module__}.{CodeModule.__name__}")
    return (
        model if place is None else append_hasher(model, CodeModule.load(str(folder), place).hasher)
    )


def read_codes(embeddings: Any, n_bits: int | None = None) -> BinaryCodes:
    """Codes from what sentence-transformers gives for precision="binary" or "ubinary".

    Parameters
    ----------
    embeddings : ndarray of int8 or uint8, shape (n, bytes) or (bytes,)
        "binary" gives int8, the bytes less 128, and "ubinary" gives uint8. Scalar quantization
        ("int8", "uint8") has the same types but one number for each dimension; it is not codes.
    n_bits : int or None, default=None
        Dimensions of the embeddings. It must be given where they do not fill their last byte; None
        takes all bits of every byte.

    >>> unsigned = np.packbits([[1, 0, 1, 1, 0, 0, 0, 0]], axis=1)
    >>> signed = (unsigned.astype(int) - 128).astype(np.int8)
    >>> read_codes(signed) == read_codes(unsigned) == BinaryCodes(unsigned, 8)
    True
    """
    table = np.atleast_2d(_check.array("embeddings", embeddings))
    if table.ndim != 2 or table.dtype not in (np.int8, np.uint8):
        raise InputError(
            "embeddings must be int8 or uint8 of shape (n, bytes), as precision='binary' and "
            f"'ubinary' give them, got {_check.describe(table)}"
        )
    if n_bits is not None and -(-n_bits // 8) != table.shape[1]:
        raise InputError(
            f"embeddings must have {-(-n_bits // 8)} bytes for {n_bits} bits, got "
            f"{table.shape[1]}; precision='int8' and 'uint8' are no codes"
        )
    if table.dtype == np.int8:
        return BinaryCodes.from_int8(table, n_bits)
    return BinaryCodes(table, 8 * table.shape[1] if n_bits is None else n_bits)
