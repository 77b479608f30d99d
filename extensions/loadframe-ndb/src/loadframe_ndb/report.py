"""The check of a MySQL Cluster config.ini as a document."""

from collections.abc import Iterator
from dataclasses import fields

from loadframe.progress import counted
from loadframe.reporting import document as doc
from loadframe.reporting import terminal
from loadframe.reporting.json_shapes import Json, json_object
from loadframe.units import show
from loadframe_ndb.records import NdbDataNode, NdbFinding, NdbReport, NdbStart, NdbThreads, cpu_list

NEEDED = ("ndb_mgmd", "ndbmtd", "ndb_mgm")
HEADS = {"error": "Wrong", "warning": "Costs speed or safety", "note": "Worth a trial"}


def render_ndb(report: NdbReport) -> str:
    counts = (
        counted(len(report.data_nodes), "data node"),
        counted(report.management_nodes, "management server"),
        counted(report.api_slots, "API slot"),
    )
    answer = [f"{report.file}: {', '.join(counts)}", *([] if report.findings else ["No rule is broken."])]
    servers = (f"{server.file}: {counted(server.connections, 'connection')}" for server in report.servers)
    sections = (
        doc.listed("Nodes", (*map(_node, report.data_nodes), *servers)),
        *(
            doc.listed(head, (_finding(row, report.file) for row in report.findings if row.severity == severity))
            for severity, head in HEADS.items()
        ),
        *(() if report.start is None else (_start(report.start),)),
        doc.listed("Not checked", _unchecked(report)),
    )
    return terminal.render(doc.Document("MySQL Cluster", tuple(answer), sections), width=110)


def _node(node: NdbDataNode) -> str:
    sizes = f"at least {show(node.memory_bytes, 'bytes')} of memory, {show(node.redo_bytes, 'bytes')} of redo log"
    threads = "; ".join(_threads(group) for group in node.threads or () if group.count)
    place = f"data node {node.node_id} on {node.host} (line {node.line})"
    return f"{place}: {sizes}{f'; threads: {threads}' if threads else ''}"


def _threads(group: NdbThreads) -> str:
    name = group.kind if group.count == 1 else f"{group.count} {group.kind}"
    if group.cpus is None:
        return name
    return f"{name} on CPU {cpu_list(group.cpus)}{' together' if group.shared and group.count > 1 else ''}"


def _finding(finding: NdbFinding, file: str) -> str:
    line = "" if finding.line is None else f"line {finding.line}"
    where = ", ".join(filter(None, ("" if finding.file == file else finding.file, line)))
    return f"{where}{': ' if where else ''}{finding.fact}. {finding.remedy} [{finding.source}]"


def _start(start: NdbStart) -> doc.Section:
    nodes = tuple(
        f"data node {node.node_id}: {show(node.memory_bytes, 'bytes')} of memory once it was started; "
        f"threads: {'; '.join(map(_threads, node.threads))}"
        for node in start.nodes
    )
    if start.seconds is not None:
        head = f"starts with it: all data nodes on this machine, after {start.seconds:.1f} s"
        blocks: tuple[doc.Block, ...] = (doc.Items(nodes),)
    else:
        head = "does not start with it"
        blocks = (doc.Prose(start.refused), doc.Settings(tuple(start.words.splitlines())))
    left_out = doc.Prose(f"Left out: {', '.join(start.left_out)}" if start.left_out else "")
    return doc.section(f"{start.version} {head}", "start", (*blocks, left_out))


def _unchecked(report: NdbReport) -> Iterator[str]:
    yield from report.not_checked
    missing = [name for name in NEEDED if report.programs[name] is None]
    if missing:
        lacking = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed here"
        yield f"whether a cluster starts with it: {lacking} (`loadframe doctor`)"
    elif report.start is None:
        yield "whether a cluster starts with it: give --start"


def ndb_json(report: NdbReport) -> Json:
    parts = {field.name: getattr(report, field.name) for field in fields(report)}
    return json_object({"schema": "loadframe.ndb/1", **parts, "refused": report.refused})
