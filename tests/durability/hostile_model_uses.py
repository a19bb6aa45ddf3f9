"""All that can be done with a model of somebody else, and what the answers must be like."""

import math

import numpy as np
from typer.testing import CliRunner

import rankbits
from rankbits import methods
from rankbits.errors import InputError
from rankbits.methods.persistence import save

MOST_CELLS = 1 << 20  # numbers of a row that is tried beside the honest ones
_SHARE_OF_EXPORTS, _SHARE_OF_COMMANDS = 1 / 60, 1 / 12


class Wrong(Exception):
    """A result that cannot be."""


class Use:
    """One thing to do with a folder, by name."""

    def __init__(self, name, run, *, is_timed=True, is_loading=False):
        self.__name__, self._run = name, run
        self.is_timed, self.is_loading = is_timed, is_loading

    def __call__(self):
        self._run()


def require(holds, words):
    if not holds:
        raise Wrong(words)


class Loaded:
    """A model from a hostile folder, and rows to encode."""

    def __init__(self, case, rows):
        self.case, self.rows, self.hasher = case, rows, None

    def load(self):
        self.hasher = rankbits.load(self.case.folder)
        self.n_bits = self.hasher.n_bits_
        require(type(self.n_bits) is int and 1 <= self.n_bits <= 4096, f"{self.n_bits} bits")
        shape = tuple(self.hasher._row_shape())
        if shape != self.rows.shape[1:] and math.prod(shape) <= MOST_CELLS:
            self.rows = np.random.default_rng(0).integers(0, 9, (3, *shape)).astype(np.float64)

    def encode(self):
        codes = self.hasher.encode(self.rows)
        require(len(codes) == 3 and codes.n_bits == self.n_bits, f"codes {codes!r:.80}")
        require(codes.packed.shape == (3, -(-self.n_bits // 8)), f"shape {codes.packed.shape}")

    def project(self):
        self._require_numbers(self.hasher.project(self.rows), self.n_bits)

    def encode_queries(self):
        codes = self.hasher.encode_queries(self.rows)
        require(len(codes) == 3 and codes.n_bits == self.n_bits, f"codes {codes!r:.80}")

    def project_queries(self):
        has_bits = "bits" in self.hasher.query_kinds
        width = self.n_bits if has_bits else 16 * -(-self.n_bits // 4)
        self._require_numbers(self.hasher.project_queries(self.rows), width)

    def correct(self):
        factors = np.asarray(self.hasher.factors(self.rows))
        require(len(factors) == 3, f"factors {factors!r:.80}")
        require(np.isfinite(self.hasher.correction()).all(), "a correction that is no number")

    def save_again(self):
        target = self.case.place / "saved"
        self.hasher.save(target)
        again = rankbits.load(target)
        digits = [methods.fingerprint(hasher) for hasher in (self.hasher, again)]
        require(digits[0] == digits[1], f"fingerprints {digits}")
        require(len(repr(self.hasher)) < 10**5, "a long repr")

    def build_modules(self):
        import torch

        rows = torch.from_numpy(np.asarray(self.rows, np.float32))
        for module in (self.hasher._torch_module(), self.hasher._query_torch_module()):
            with torch.no_grad():
                require(len(module(rows)) == 3, "a module that loses rows")

    def export(self):
        methods.export_onnx(self.hasher, self.case.place / "model.onnx")

    def serve(self):
        from rankbits.service._encoders import load_encoder
        from rankbits.service._limits import Limits
        from rankbits.service._problems import RequestProblem

        encoder = load_encoder(self.case.folder, None, Limits())
        try:
            if encoder.takes_vectors:
                rows = encoder.rows_of_vectors(np.asarray(self.rows, np.float64).tolist())
                self._require_numbers(encoder.weights(rows), None)
                encoder.encode(rows, "items")
            require(isinstance(encoder.fingerprint, str), "no fingerprint")
        except RequestProblem as problem:
            raise InputError(str(problem.detail)) from None

    def read_as_module(self):
        from rankbits.adapters.sentence_transformers import CodeModule

        self.case.folder.parent.joinpath("text").mkdir(exist_ok=True)
        link = self.case.place / "text" / "model"
        if not link.is_symlink():
            link.symlink_to(self.case.folder)
        module = CodeModule.load(str(self.case.place), "text")
        require(module.get_embedding_dimension() == self.n_bits, "another dimension")

    def _require_numbers(self, values, width):
        is_right = len(values) == 3 and values.ndim == 2 and width in (None, values.shape[1])
        require(is_right and values.dtype.kind == "f", f"values {values.dtype} {values.shape}")
        require(np.isfinite(values).all(), "logits that are no numbers")


def replace_folder(case):
    """Save an honest model over a copy of the hostile folder: it is replaced whole or refused."""
    save(rankbits.load(case.honest), case.folder)


def run_command(case, rows):
    """`rankbits encode` with the hostile model."""
    from rankbits.cli._app import app

    np.save(case.place / "rows.npy", rows)
    out = str(case.place / "codes.npz")
    arguments = ["encode", str(case.folder), str(case.place / "rows.npy"), "--out", out]
    result = CliRunner().invoke(app, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    require(result.exit_code in (0, 1), f"exit code {result.exit_code}: {result.output!r:.300}")
    if result.exit_code:
        require(result.stderr.strip().count("\n") == 0, f"errors {result.stderr!r:.300}")
        raise InputError(result.stderr.strip().encode("ascii", "replace").decode()[:500])


def uses_of(case, rows, *, with_all=False):
    """Uses of a case in their order; those that take long only in some cases."""
    loaded, draw = Loaded(case, rows), case.rng.random()
    yield Use("load", loaded.load, is_loading=draw > _SHARE_OF_COMMANDS)
    if loaded.hasher is not None:
        yield from _uses_of_loaded(loaded, with_all or draw < _SHARE_OF_EXPORTS)
    if with_all or draw < _SHARE_OF_COMMANDS:
        yield Use("command", lambda: run_command(case, rows))
        yield Use("save over", lambda: replace_folder(case))


def _uses_of_loaded(loaded, with_export):
    hasher = loaded.hasher
    yield Use("encode", loaded.encode)
    yield Use("project", loaded.project)
    if "bits" in hasher.query_kinds:
        yield Use("encode_queries", loaded.encode_queries)
    yield Use("project_queries", loaded.project_queries)
    if hasattr(hasher, "factors"):
        yield Use("correct", loaded.correct)
    yield Use("save", loaded.save_again)
    yield Use("modules", loaded.build_modules)
    yield Use("serve", loaded.serve)
    yield Use("text module", loaded.read_as_module)
    if with_export:
        yield Use("export", loaded.export, is_timed=False)
