"""Adapters: models of rankbits as parts of other libraries.

- `rankbits.adapters.sentence_transformers`: a hasher as the last module of a SentenceTransformer
- `rankbits.adapters.faiss`: a hasher in front of a binary index of faiss, or as its pre-transform
- `rankbits.adapters.pgvector`: the two-stage query over a compressed folder, as SQL

Codes alone are exchanged by `rankbits.index.interop`; an adapter knows the model that makes them.
"""

__all__: list[str] = []
