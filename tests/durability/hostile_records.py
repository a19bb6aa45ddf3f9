"""What a stranger may write into the record of a model, `model.json`."""

import json

import numpy as np
from hostile_rows import pick

NUMBERS = (0, -1, 1, 2, 7, 9, 4096, 4097, 10**5, 10**9, 2**31, 2**63, -(2**63), 10**30, 10**400)
OTHERS = (
    None,
    True,
    False,
    "",
    "8",
    "nan",
    0.5,
    -0.0,
    1e308,
    [],
    {},
    [[]],
    [0],
    {"a": 1},
    "x" * 10**5,
)
WORDS = (
    "../../victim",
    "/etc/passwd",
    "talr-ap",
    "lsh",
    "os.system",
    "GradientHasher",
    "module",
    "efficientnet-lite0",
    "mlp",
    "linear",
    "cnn",
    "resnet",
    "backbone",
    "rbf",
    "ip",
    "descent",
    "last:1",
    "last:999999999999",
    "last:" + "9" * 5000,
    "all",
    "\ud800",
    "\x00\n\x1b[2J",
)
WRAPPED = (
    {"__float__": "nan"},
    {"__float__": "inf"},
    {"__float__": "1"},
    {"__float__": []},
    {"__tuple__": 3},
    {"__tuple__": [1, 2]},
    {"__tuple__": [], "a": 1},
    {"__tuple__": [10**9, 10**9]},
    {"__tuple__": [1] * 20_000},
)
TOKENS = ("NaN", "Infinity", "1e999", "-1e999", "1e-999", "9" * 5000, "9" * 400, "1" + "0" * 4299)


def deep(rng, closing=True):
    """JSON that is nested far, in brackets or braces."""
    n = pick(rng, (40, 300, 900, 3000, 200_000))
    begin, middle, end = pick(rng, (("[", "", "]"), ('{"a":', "1", "}")))
    return begin * n + middle + (end * n if closing else "")


def value_for(rng, present):
    """A value that is not the present one: of its kind and out of bounds, or of another kind."""
    if isinstance(present, bool | None) or rng.random() < 0.25:
        return pick(rng, OTHERS)
    if isinstance(present, int) and rng.random() < 0.8:
        near = (present + 1, present - 1, 2 * present, -present)
        return pick(rng, NUMBERS + near)
    if isinstance(present, str) and rng.random() < 0.8:
        return pick(rng, WORDS)
    if isinstance(present, list) and rng.random() < 0.7:
        longer = [*present, pick(rng, NUMBERS)], present[1:], present[::-1], present * 2
        return pick(rng, (*longer, [1] * 20_000, [10**9, 10**9], [value_for(rng, None)]))
    return pick(rng, (*WRAPPED, *NUMBERS, *OTHERS, *WORDS))


def places(value, depth=0):
    """Every place in a record: the container, its key, and how deep it lies."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value[:4])
    for key, part in pairs:
        yield value, key
        if isinstance(part, dict | list) and part:
            yield from places(part, depth + 1)


def change_record(case, model, rng):
    """Values anywhere in the record: replaced, removed, added or exchanged."""
    container, key = pick(rng, list(places(model.record)))
    present, way = container[key], rng.random()
    if way < 0.75:
        container[key] = value_for(rng, present)
        case.say(f"{key!r} becomes {container[key]!r:.60}")
    elif way < 0.85:
        del container[key]
        case.say(f"without {key!r}")
    elif isinstance(container, dict):
        name = pick(rng, ("checkpoint", "log", "scoring", "__class__", "n_bits_", "encoder", "a"))
        container[name] = pick(rng, WORDS + NUMBERS)
        case.say(f"with {name!r} = {container[name]!r:.60}")


def change_architecture(case, model, rng):
    """What decides how large an encoder is, and of which kind."""
    facts = model.record["facts"]
    if "encoder" not in facts:
        change_facts(case, model, rng)
        return
    encoder = facts["encoder"]
    name = pick(rng, list(encoder))
    values = {
        "hidden": ([10**9] * 2, [1] * 20_000, [1] * 500, [10**5] * 50, [0], [-3], ["5"], [2.0]),
        "input_shape": (
            [10**9],
            [16, 16, 3],
            [16, 16, 10**9],
            [10**6] * 3,
            [],
            [0],
            [-1],
            [1] * 60,
        ),
        "posterior": (64, 65, 1, -1, 10**9, True, 2.0),
        "fine_tune": ("all", "last:1", "last:15", "last:0", "last:99", "last:" + "9" * 5000, True),
        "backbone": ("efficientnet-lite0", "module", "", "../x", 3),
        "image_size": (0, -1, 32, 1024, 10**9, 10**30, 31.5, "32"),
        "kind": ("linear", "mlp", "cnn", "resnet", "backbone", "Module", 3, []),
        "skip": (True, 1, "yes", [0]),
    }
    encoder[name] = pick(rng, values.get(name, (*NUMBERS, value_for(rng, encoder[name]))))
    case.say(f"encoder.{name} = {encoder[name]!r:.60}")
    if name == "input_shape" and rng.random() < 0.5:
        facts["input_shape"] = encoder[name]


def change_facts(case, model, rng):
    """What the arrays do not say."""
    facts, params = model.record["facts"], model.record["params"]
    chosen = facts if facts and rng.random() < 0.6 else params
    name = pick(rng, list(chosen))
    chosen[name] = value_for(rng, chosen[name])
    case.say(f"{name} = {chosen[name]!r:.60}")


def change_parameters(case, model, rng):
    """Parameters that decide about encoding, and those that a model has no business to set."""
    values = {
        "n_threads": (*NUMBERS, "4", 0.5, True),
        "n_bits": (*NUMBERS, "8", None, 8.0),
        "kernel": ("rbf", None, "linear", 3),
        "metric": ("ip", "l2", "cosine", None, 7),
        "items": ("planes", "descent", ""),
        "queries": ("same", "own", "real", 3),
        "classes": ("grow", "fixed", "ignore", []),
        "checkpoint": ("../victim", "/tmp/x", None),
        "log": ("../victim", "/tmp/x"),
        "device": ("cuda", "meta", "mps", "cpu", 3),
        "encoder": ("cnn", "mlp", "backbone", None),
        "image_size": (10**9, 32, 64),
    }
    name = pick(rng, list(values))
    model.record["params"][name] = pick(rng, values[name])
    case.say(f"params.{name} = {model.record['params'][name]!r:.60}")
    if name == "n_bits" and rng.random() < 0.5:
        model.record["n_bits"] = model.record["params"]["n_bits"]


def change_method(case, model, rng):
    """The arrays of one method under the name of another."""
    from rankbits import methods

    model.record["method"] = pick(rng, (*methods.names(), "LSH", "shallow.lsh", "os", "", "../lsh"))
    if rng.random() < 0.6:
        model.record["params"] = {"n_bits": model.record["n_bits"]}
    case.say(f"called {model.record['method']}")


def change_sizes(case, model, rng):
    """Counts that other counts follow from."""
    name = pick(rng, ("n_bits", "n_features_in", "feature_names_in"))
    n = model.record["n_features_in"]
    names = ([], ["a"], ["a"] * n, [1] * n, [f"f{k}" for k in range(n)], ["x" * 10**5] * n, {})
    value = pick(rng, names if name == "feature_names_in" else (*NUMBERS, n + 1, n - 1, 1.0, "8"))
    model.record[name] = value
    if name == "n_bits" and rng.random() < 0.5:
        model.record["params"]["n_bits"] = value
    case.say(f"{name} = {value!r:.60}")


def change_text(case, model, rng):
    """The text of model.json: what a reader of JSON must refuse or bear."""
    way = pick(rng, ("nested", "field", "twice", "token", "cut", "bytes", "long", "noise", "other"))
    case.say(f"text of model.json: {way}")
    at, n = rng.random(), int(rng.integers(1, 30))
    token, junk = pick(rng, TOKENS), rng.integers(0, 256, 40, dtype=np.uint8).tobytes()
    nested, whole = deep(rng), deep(rng, closing=rng.random() < 0.5)
    n_wide = 700_000 if rng.random() < 0.3 else 190_000  # beyond what is read, and within
    wide = "[" + "[]," * n_wide + "0]"

    def write(text):
        cut = int(at * len(text))
        return {
            "nested": lambda: whole.encode(),
            "field": lambda: b'{"facts": ' + nested.encode() + b", " + text[1:],
            "twice": lambda: b'{"n_bits": 4096, "facts": {}, "params": [], ' + text[1:],
            "token": lambda: b'{"n_bits": ' + token.encode() + b", " + text[1:],
            "cut": lambda: text[:cut],
            "bytes": lambda: text[:cut] + junk[:n] + text[cut + n :],
            "long": lambda: b'{"x": ' + wide.encode() + b", " + text[1:],
            "noise": lambda: junk * n,
            "other": lambda: pick(
                rng, (b"", b"null", b"3", b"\xff\xfe{}", b"\xef\xbb\xbf{}", b"[]")
            ),
        }[way]()

    model.text = write
    if way in ("field", "token", "long") and rng.random() < 0.7:  # signed as it will be read
        model.text, spot = None, pick(rng, ("facts", "params", "n_bits", "feature_names_in"))
        try:
            model.record[spot] = json.loads({"field": nested, "token": token, "long": wide}[way])
            model.sign()
        except (ValueError, RecursionError):
            model.text = write
