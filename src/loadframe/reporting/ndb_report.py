"""A config.ini of MySQL Cluster, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from loadframe.model import NdbDataNode, NdbFinding, NdbReport, NdbStart, NdbThreads, cpu_list
from loadframe.reporting.layout import wrapped
from loadframe.units import show

NEEDED = ("ndb_mgmd", "ndbmtd", "ndb_mgm")
"""What starts a cluster."""
HEADS = {"error": "Wrong", "warning": "Costs speed or safety", "note": "Worth a trial"}


def render_ndb(report: NdbReport, *, width: int = 110) -> str:
    """What the file makes, what is wrong with it, the worst first, and what was not looked at."""
    nodes = (
        _count(len(report.data_nodes), "data node"),
        _count(report.management_nodes, "management server"),
        _count(report.api_slots, "API slot"),
    )
    lines = [f"{report.file}: {', '.join(nodes)}", *(line for node in report.data_nodes for line in _node(node, width))]
    lines += [f"  {server.file}: {_count(server.connections, 'connection')}" for server in report.servers]
    for severity, head in HEADS.items():
        found = [one for one in report.findings if one.severity == severity]
        if found:
            lines += ["", f"{head}:", *(line for one in found for line in _finding(one, report.file, width))]
    if not report.findings:
        lines += ["", "No rule is broken."]
    if report.start is not None:
        lines += ["", *_start(report.start, width)]
    if unchecked := [line for words in _unchecked(report) for line in wrapped(words, width)]:
        lines += ["", "Not checked:", *unchecked]
    return "\n".join(lines)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _node(node: NdbDataNode, width: int) -> Iterator[str]:
    sizes = f"at least {show(node.memory_bytes, 'bytes')} of memory, {show(node.redo_bytes, 'bytes')} of redo log"
    yield f"  data node {node.node_id} on {node.host} (line {node.line}): {sizes}"
    groups = [group for group in node.threads or () if group.count]
    if groups:
        yield from wrapped(f"threads: {'; '.join(_threads(group) for group in groups)}", width, indent=4)


def _threads(group: NdbThreads) -> str:
    name = group.kind if group.count == 1 else f"{group.count} {group.kind}"
    if group.cpus is None:
        return name
    return f"{name} on CPU {cpu_list(group.cpus)}{' together' if group.shared and group.count > 1 else ''}"


def _finding(one: NdbFinding, file: str, width: int) -> Iterator[str]:
    place = [one.file] if one.file != file else []
    place += [f"line {one.line}"] if one.line is not None else []
    yield from wrapped(f"{', '.join(place)}: {one.fact}" if place else one.fact, width)
    yield from wrapped(f"{one.remedy} [{one.source}]", width, indent=4)


def _start(start: NdbStart, width: int) -> Iterator[str]:
    if start.seconds is None:
        yield f"{start.version} does not start with it:"
        yield from wrapped(start.refused, width)
        yield from (f"    {line}" for line in start.words.splitlines())
    else:
        yield f"{start.version} starts with it: all data nodes on this machine, after {start.seconds:.1f} s"
    for node in start.nodes:
        yield f"  data node {node.node_id}: {show(node.memory_bytes, 'bytes')} of memory once it was started"
        yield from wrapped(f"threads: {'; '.join(_threads(group) for group in node.threads)}", width, indent=4)
    if start.left_out:
        yield from wrapped(f"Left out: {', '.join(start.left_out)}", width)


def _unchecked(report: NdbReport) -> Iterator[str]:
    yield from report.not_checked
    missing = [name for name in NEEDED if report.programs[name] is None]
    if missing:
        lacking = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed here"
        yield f"whether a cluster starts with it: {lacking} (`loadframe doctor`)"
    elif report.start is None:
        yield "whether a cluster starts with it: give --start"
