"""Tables of methods, metrics, kinds of index and protocols, from what each says of itself."""

import inspect
import math
import re
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import measurements
from docs_generator.markdown import code, table
from rankbits import benchmark, methods, papers
from rankbits.index import engines
from rankbits.metrics import Metric, registered


def methods_table() -> str:
    """One row per method: name, class, what it learns from, whether it needs torch, summary."""
    header = ["Name", "Class", "Learns from", "Needs torch", "What it does"]
    return table(header, (_method_row(name) for name in methods.names()))


def _method_row(name: str) -> list[str]:
    hasher = methods.get(name)
    needs_torch = "yes" if trains_by_gradient(hasher) else "no"
    summary = first_sentence(type(hasher))
    return [code(name), code(type(hasher).__name__), learns_from(hasher), needs_torch, summary]


def learns_from(hasher: Any) -> str:
    """Whether the method looks at y, as its `fit` and its scikit-learn tags say.

    >>> learns_from(methods.get("itq"))
    'X'
    """
    if "ignored" in (inspect.getdoc(hasher.fit) or ""):
        return "X"
    return "X and y" if hasher.__sklearn_tags__().target_tags.required else "X, and y if given"


def trains_by_gradient(hasher: Any) -> bool:
    """Whether a class that the method is built on comes from a module that imports torch."""
    return any(hasattr(inspect.getmodule(base), "torch") for base in type(hasher).__mro__)


def first_sentence(documented: Any) -> str:
    """The first paragraph of a docstring, without references.

    >>> first_sentence(methods.get("lsh"))
    'Random hyperplane hashing: bit k is the side of hyperplane k that x lies on.'
    """
    paragraph = (inspect.getdoc(documented) or "").split("\n\n")[0]
    return re.sub(r" \[\d+\]_", "", " ".join(paragraph.split()))


def metrics_table() -> str:
    """One row per metric: what it is, and which cutoffs, options and bounds a name may have."""
    header = ["Name", "What it is", "Cutoff", "Options", "Bounds", "Nothing relevant"]
    return table(header, map(_metric_row, registered()))


def _metric_row(metric: Metric) -> list[str]:
    options = "; ".join(", ".join(map(code, option.choices)) for option in metric.options)
    bounds = "yes" if metric.bounds else ""
    empty = "undefined" if math.isnan(metric.value_if_empty) else f"{metric.value_if_empty:g}"
    name, cutoffs = code(metric.name), ", ".join(metric.cutoffs)
    return [name, metric.summary, cutoffs, options, bounds, empty]


def metric_options_table() -> str:
    """One row per word that a name may have in parentheses: what the word means."""
    rows = (row for metric in registered() for row in _option_rows(metric))
    return table(["Name", "Sets", "What it means"], rows)


def _option_rows(metric: Metric) -> Iterable[list[str]]:
    for option in metric.options:
        for word, meaning in option.choices.items():
            default = "; the default" if word == option.default else ""
            yield [code(f"{metric.name}({word})"), code(option.keyword), f"{meaning}{default}"]


def metrics_tables() -> str:
    """Both tables of metrics."""
    return f"{metrics_table()}\n\n{metric_options_table()}"


def kinds_table() -> str:
    """One row per kind of index: name, whether it is exact, options, summary."""
    rows = (_kind_row(engines.get(name)) for name in engines.names())
    return table(["Kind", "Exact", "Options", "How it searches"], rows)


def _kind_row(engine: type[engines.Engine]) -> list[str]:
    options = ", ".join(code(f"{f.name}={f.default!r}") for f in fields(engine.options_class))
    return [code(engine.name), "yes" if engine.is_exact else "no", options, engine.summary]


def protocols_table() -> str:
    """One row per protocol: name, what it is, code lengths, metrics, the data it needs."""
    header = ["Protocol", "What it is", "Bits", "Metrics", "Data"]
    rows = (
        [
            code(protocol.name),
            protocol.title,
            ", ".join(str(n_bits) for n_bits in protocol.bits),
            _first(protocol.metrics, 3),
            code(protocol.files),
        ]
        for protocol in benchmark.protocols()
    )
    return table(header, rows)


def protocol_rules_table() -> str:
    """One row per protocol: how it splits the data, what is relevant, and what to know."""
    header = ["Protocol", "Split", "Relevance", "Note"]
    rows = (
        [code(p.name), code(repr(p.split)), code(repr(p.relevance)), p.note]
        for p in benchmark.protocols()
    )
    return table(header, rows)


def protocol_rules_tables() -> str:
    """The rules of every protocol, and what each rule says."""
    return f"{protocol_rules_table()}\n\n{rules_table()}"


def rules_table() -> str:
    """One row per rule that a protocol can have, from its docstring."""
    names = [name for name in benchmark.__all__ if _is_rule(getattr(benchmark, name))]
    rows = ([code(name), first_sentence(getattr(benchmark, name))] for name in names)
    return table(["Rule", "What it says"], rows)


def _is_rule(value: Any) -> bool:
    """A rule of splitting can draw, a rule of relevance gives a task."""
    return inspect.isclass(value) and (hasattr(value, "draw") or hasattr(value, "task"))


def _first(names: Iterable[str], n: int) -> str:
    """The first n names, and how many more there are."""
    listed = [code(name) for name in names]
    more = len(listed) - n
    return ", ".join(listed[:n]) + (f" and {more} more" if more > 0 else "")


def measurement_table(name: str) -> str:
    """The table in a file of docs/measurements, and how it was measured."""
    content = measurements.load(name)
    rows = ([str(cell) for cell in row] for row in content["rows"])
    note = f"{content['note']} " if content["note"] else ""
    return f"{table(content['columns'], rows)}\n\n{note}{_origin(content)}"


def _origin(content: dict[str, Any]) -> str:
    """The command that measured a table, its commit, and the machine if it matters.

    >>> _origin({"command": "make soak", "recorded": ["b", "a", "b"], "machine": "2 cores"})
    '`make soak`, recorded in b, a; 2 cores.'
    """
    if recorded := content.get("recorded"):
        commits = f", recorded in {', '.join(dict.fromkeys(recorded))}"
    else:
        commits = f" at commit {content['commit']}"
    machine = f"; {content['machine']}" if content["machine"] else ""
    return f"`{content['command']}`{commits}{machine}."


def other_measurements_table() -> str:
    """One row per file of docs/measurements that no page shows: its name, and its command."""
    pages = "".join(path.read_text() for path in measurements.FOLDER.parent.glob("*.md"))
    rows = (
        [f"[{name}](measurements/{name}.json)", code(measurements.load(name)["command"])]
        for name in measurements.names()
        if f"<!-- generated: measurement {name} -->" not in pages
    )
    return table(["File", "Command"], rows)


def papers_table() -> str:
    """One row per table or figure of a paper: id, where it stands, what it shows, data, methods."""
    header = ["Id", "Where", "What it shows", "Protocols", "Methods", "What stands in for what"]
    return table(header, map(_exhibit_row, papers.exhibits()))


def _exhibit_row(exhibit: papers.Exhibit) -> list[str]:
    protocols = dict.fromkeys(
        code(part.protocol) + (" (if there)" if part.is_optional else "") for part in exhibit.parts
    )
    names = dict.fromkeys(code(name) for part in exhibit.parts for name in part.methods)
    source = exhibit.source.partition(",")[0] + f" et al., {exhibit.place}"
    return [
        code(exhibit.id),
        source,
        exhibit.title,
        ", ".join(protocols) or "none: exact numbers",
        ", ".join(names),
        exhibit.stand_in,
    ]
