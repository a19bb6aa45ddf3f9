"""Models of every method and every kind of encoder, small, and how to write them down by hand.

The writing here is that of the format, not of rankbits: `Model` takes the two files apart and puts
them together again with checksums that are right, whatever was changed in between.
"""

import hashlib
import json
import struct
import warnings

import numpy as np

N_BITS, N_FEATURES = 8, 12
QUICK = {"epochs": 1, "n_threads": 1}  # of methods that train by gradients
FEW = ("lsh", "talr-ap", "fasthash", "ksh", "additive", "cnn")
PICTURES = {"encoder": "backbone", "image_size": 32}


def shapes_of_models():
    """By the name of a template: method, whether it reads images, and its parameters."""
    from rankbits import methods

    deep = [name for name in methods.names() if methods.registry.METHODS[name].needs_torch]
    own = {name: {"n_trees": 3} for name in ("fasthash", "structhash")} | dict.fromkeys(deep, QUICK)
    shapes = {name: (name, False, own.get(name, {})) for name in methods.names()}
    shapes |= {
        "rabitq of inner products": ("rabitq", False, {"metric": "ip"}),
        "additive with groups": ("additive", False, {"n_groups": 3}),
        "additive with classes": ("additive", False, {"classes": "grow"}),
        "distilled with groups": ("distilled", False, {"n_groups": 3}),
        "distilled by descent": ("distilled", False, {"items": "descent"}),
        "rsh with anchors": ("rsh", False, {"kernel": "rbf"}),
        "ssh with anchors": ("ssh", False, {"kernel": "rbf", "unlabeled": -1}),
        "lwh with anchors": ("lwh", False, {"kernel": "rbf"}),
    }
    layers = {"encoder": "mlp", "hidden": (6, 5), "normalization": "layer", "skip": True}
    small = {"hidden": (4, 5)}
    for name, method, is_image, params in (
        ("linear", "talr-ap", False, {"encoder": "linear"}),
        ("mlp", "talr-ap", False, {**layers, "posterior": 0}),
        ("mlp with anchors", "talr-ap", False, {"encoder": "mlp", "kernel": "rbf", "n_anchors": 7}),
        ("queries of their own", "talr-ap", False, {"queries": "own"}),
        ("real queries", "talr-ap", False, {"queries": "real"}),
        ("growing classes", "talr-ap", False, {"classes": "grow", "queries": "real"}),
        ("cnn", "talr-ap", True, {"encoder": "cnn", **small}),
        ("resnet", "talr-ap", True, {"encoder": "resnet", **small}),
        ("resnet without posterior", "dpn", True, {"encoder": "resnet", "posterior": 0, **small}),
        ("backbone", "csq", True, {**PICTURES, "hidden": (6,)}),
    ):
        shapes[name] = (method, is_image, {**params, **QUICK})
    return shapes


def slow_shapes():
    """Templates whose fit takes seconds."""
    tuned = {**PICTURES, "fine_tune": "last:1", "posterior": 2, "tuning_epochs": 1, "n_views": 1}
    growing = {"classes": "grow", "queries": "real", "posterior": 2}
    return {
        "posterior": ("talr-ap", False, {"encoder": "mlp", "posterior": 2, **QUICK}),
        "growing classes with posterior": ("talr-ap", False, {**growing, **QUICK}),
        "tuned backbone": ("talr-ap", True, {**tuned, **QUICK}),
    }


def choose_shapes(*, few, with_slow):
    """The templates of a run."""
    shapes = shapes_of_models()
    if few:
        return {name: shapes[name] for name in FEW}
    return shapes | slow_shapes() if with_slow else shapes


def rows_for(is_image, n=40):
    """Rows and their labels."""
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 3, n)
    if is_image:
        return rng.integers(0, 256, (n, 16, 16, 3)).astype(np.uint8), labels
    centers = 2.0 * rng.standard_normal((3, N_FEATURES))
    return centers[labels] + rng.standard_normal((n, N_FEATURES)), labels


def build_templates(base, shapes):
    """Fit and save what is not there yet; names in their order, each a folder `template-number`."""
    from rankbits import methods

    for number, (method, is_image, params) in enumerate(shapes.values()):
        folder = base / f"template-{number}"
        if (folder / "model.json").exists():
            continue
        hasher = methods.get(method, n_bits=N_BITS, **params)
        if "random_state" in hasher.get_params():
            hasher.set_params(random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits of so few rows
            hasher.fit(*rows_for(is_image)).save(folder)
    return list(shapes)


class Model:
    """The two files of a model as values: a record, and a header and bytes of arrays."""

    def __init__(self, folder):
        self.record = json.loads((folder / "model.json").read_text())
        content = (folder / "model.safetensors").read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        self.header = json.loads(content[8 : 8 + length])
        self.data = content[8 + length :]
        self.raw = None  # the whole of model.safetensors, where it is no longer a header and data
        self.text = None  # the same of model.json; FACTS and SHA256 stand for what is computed

    def array(self, name):
        entry = self.header[name]
        begin, end = entry["data_offsets"]
        return np.frombuffer(self.data[begin:end], _DTYPES[entry["dtype"]]).reshape(entry["shape"])

    def names(self):
        return [name for name in self.header if name != "__metadata__"]

    def set_arrays(self, arrays):
        """Lay out all arrays anew."""
        self.header, parts, at = {}, [], 0
        for name, array in arrays.items():
            part = np.ascontiguousarray(array).tobytes()
            dtype = next(key for key, value in _DTYPES.items() if value == array.dtype.str[1:])
            offsets = [at, at + len(part)]
            shape = list(array.shape)
            self.header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
            parts.append(part)
            at += len(part)
        self.data = b"".join(parts)

    def arrays(self):
        return {name: self.array(name) for name in self.names()}

    def content(self):
        """The bytes of model.safetensors."""
        if self.raw is not None:
            return self.raw
        header = json.dumps(self.header).encode()
        header += b" " * (-len(header) % 8)
        return struct.pack("<Q", len(header)) + header + self.data

    def write(self, folder):
        """Both files, with right checksums as far as JSON can have them."""
        content = self.content()
        (folder / "model.safetensors").write_bytes(content)
        if "arrays_sha256" in self.record:
            self.record["arrays_sha256"] = hashlib.sha256(content).hexdigest()
        (folder / "model.json").write_bytes(
            self.sign() if self.text is None else self.text(self.sign())
        )

    def sign(self):
        """The record as bytes, with its checksum."""
        rest = {name: value for name, value in self.record.items() if name != "json_sha256"}
        text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
        if "json_sha256" in self.record:
            self.record["json_sha256"] = hashlib.sha256(text.encode()).hexdigest()
        return json.dumps(self.record).encode()


_DTYPES = {
    "F64": "f8",
    "F32": "f4",
    "F16": "f2",
    "I64": "i8",
    "I32": "i4",
    "I16": "i2",
    "I8": "i1",
    "U8": "u1",
    "BOOL": "b1",
    "U64": "u8",
}
