"""What a stranger may write into the arrays of a model, `model.safetensors`."""

import pickle
import struct

import numpy as np
from hostile_folders import HUGE, Bomb
from hostile_records import deep
from hostile_rows import pick

EXTREMES = (np.nan, np.inf, -np.inf, 1e38, 1e308, -1e308, 5e-324, 1e-40, -0.0, 0.0, -1.0, 2.0**62)


def change_values(case, model, rng):
    """Numbers of an array: beyond all bounds, or of another array of the same shape."""
    name, arrays = pick(rng, model.names()), model.arrays()
    array = arrays[name].copy()
    value = pick(rng, EXTREMES)
    if array.dtype.kind in "iub":
        value = pick(rng, (0, 1, -1, 12, 2**31, 2**62, -(2**63)))
        value = value if array.dtype.kind == "i" else abs(value) % 2
    with np.errstate(all="ignore"):
        value = np.asarray(value).astype(array.dtype)
    way = rng.random()
    if way < 0.4:
        array[...] = value
    elif array.size:
        array.reshape(-1)[int(rng.integers(array.size))] = value
    if way > 0.85:
        same = [other for other in arrays if arrays[other].shape == array.shape]
        other = pick(rng, same)
        arrays[name], arrays[other] = arrays[other], arrays[name]
        case.say(f"{name} and {other} exchanged")
    else:
        arrays[name] = array
        case.say(f"{name} has {value}")
    model.set_arrays(arrays)


def change_shapes(case, model, rng):
    """Shapes and types of arrays, with the bytes that they need."""
    arrays = model.arrays()
    name = pick(rng, list(arrays))
    array = arrays[name]
    flat = array.reshape(-1)
    dtype = pick(rng, ("f8", "f4", "f2", "i8", "i4", "u1", "b1", "u8"))
    ways = {
        "transposed": lambda: array.T,
        "flat": lambda: flat,
        "empty": lambda: flat[:0],
        "emptied": lambda: array[:0],
        "scalar": lambda: flat[0] if flat.size else array,
        "shorter": lambda: array[:-1] if array.ndim else array,
        "longer": lambda: np.concatenate([array, array]) if array.ndim else flat,
        "wider": lambda: np.stack([array, array], axis=-1).reshape(*array.shape[:-1], -1),
        "deeper": lambda: array[None],
        "flatter": lambda: array.reshape((1,) * 20 + array.shape),
        "retyped": lambda: array.astype(dtype),
        "many": lambda: np.zeros((0, 2**40), array.dtype),
    }
    way = pick(rng, list(ways))
    with np.errstate(all="ignore"):
        arrays[name] = np.asarray(ways[way]())
    if way == "wider" and rng.random() < 0.5:  # all arrays alike, so that sizes agree
        arrays = {
            key: np.concatenate([part, part], axis=-1) if part.ndim else part
            for key, part in model.arrays().items()
        }
    case.say(f"{name} {way} {dtype}")
    model.set_arrays(arrays)


def change_names(case, model, rng):
    """Arrays that are missing, of another name, or too many."""
    arrays = model.arrays()
    name, way = pick(rng, list(arrays)), pick(rng, ("removed", "renamed", "added", "many", "none"))
    case.say(f"{name} {way}")
    if way in ("removed", "renamed"):
        array = arrays.pop(name)
        if way == "renamed":
            others = (f"queries.{name}", f"trunk.{name}", "__x__", "", "a" * 10**4)
            arrays[pick(rng, others)] = array
    elif way == "added":
        others = (f"queries.{name}", f"{name}.x", "anchors", "centers", "extra")
        arrays[pick(rng, others)] = arrays[name]
    elif way == "many":
        arrays |= {f"head.body.layers.{k}.weight": np.zeros(1, np.float32) for k in range(5000)}
    else:
        arrays = {}
    model.set_arrays(arrays)


def change_header(case, model, rng):
    """What the header says of an array, while the bytes stay as they are."""
    name = pick(rng, model.names())
    entry = model.header[name]
    begin, end = entry["data_offsets"]
    shape = entry["shape"]
    n = len(model.data)
    key, value = pick(
        rng,
        (
            ("data_offsets", [0, end - begin]),
            ("data_offsets", [end, begin]),
            ("data_offsets", [begin, n + 10**9]),
            ("data_offsets", [-1, end]),
            ("data_offsets", [2**63, 2**64]),
            ("data_offsets", [10**400, 10**400]),
            ("data_offsets", [begin, end, end]),
            ("data_offsets", [0, HUGE]),
            ("shape", [2**40, 2**40]),
            ("shape", [2**63, 2]),
            ("shape", [2**64 + 8]),
            ("shape", [-1, *shape]),
            ("shape", [*shape, 0, 2**62]),
            ("shape", [1] * 40 + shape),
            ("shape", [1] * 4000 + shape),
            ("shape", [10**400]),
            ("shape", "12"),
            (
                "dtype",
                pick(rng, ("BF16", "F8_E4M3", "F4", "C64", "O", "object", "", "f8", 3, None)),
            ),
            ("dtype", pick(rng, ("F64", "F32", "I64", "BOOL", "U64"))),
        ),
    )
    entry[key] = value
    if key == "data_offsets" and value == [0, HUGE]:
        entry |= {"shape": [HUGE], "dtype": "U8"}
    if rng.random() < 0.2:
        model.header["__metadata__"] = pick(rng, ({"a": 1}, {"a": "x" * 10**5}, [], 3, {"a": {}}))
    case.say(f"header of {name}: {key} = {value!r:.60}")


def change_bytes(case, model, rng):
    """The bytes of model.safetensors: its length, its end, or something else altogether."""
    whole = model.content()
    way = pick(
        rng, ("length", "cut", "longer", "pickle", "npy", "empty", "noise", "nested", "twice")
    )
    length = pick(rng, (0, 1, 2, 10**6, 2**31, 2**40, 2**63, 2**64 - 1, len(whole), len(whole) - 8))
    header = deep(rng).encode()
    one = b'"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}'
    entry = b"{" + one + b"," + one + b"}"
    model.raw = {
        "length": lambda: struct.pack("<Q", length) + whole[8:],
        "cut": lambda: whole[: int(rng.integers(len(whole)))],
        "longer": lambda: whole + bytes(int(rng.integers(1, 5000))),
        "pickle": lambda: pickle.dumps(Bomb(case.canary)),
        "npy": lambda: b"\x93NUMPY\x01\x00" + whole,
        "empty": lambda: b"",
        "noise": lambda: rng.integers(0, 256, 4000, dtype=np.uint8).tobytes(),
        "nested": lambda: struct.pack("<Q", len(header)) + header,
        "twice": lambda: struct.pack("<Q", len(entry)) + entry + b"\1",
    }[way]()
    case.say(f"bytes: {way}")
