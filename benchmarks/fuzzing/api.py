"""Readers that a command calls with bytes of others, called as it calls them: UserError is all that they raise."""

from __future__ import annotations

import io
import math
import os
import random
import socket
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import zstandard

from loadframe.connections.http_words import wrong_path
from loadframe.errors import RecordingError
from loadframe.formats.exposition import Exposed, ExpositionError, Pick, read_json, read_lines, read_prometheus
from loadframe.formats.json_text import write_json
from loadframe.host import listening
from loadframe.kinds.exposed import Exposure, Taken
from loadframe.kinds.service import file_settings
from loadframe.knowledge.families import derived
from loadframe.metrics import is_known
from loadframe.metrics.exposed import derived_metrics, split, with_quantiles
from loadframe.model import SettingValue
from loadframe.recording import jvm_sampling, procfs
from loadframe.recording.frames import BLOCK_HEADER, BLOCK_MAGIC, parse_header, scan_blocks
from loadframe.recording.metrics import window_metrics
from loadframe.recording.profiles import perf, profiler
from loadframe.recording.readers import RecordingReader
from loadframe.recording.series import metric_series
from loadframe.reporting.exports import exported
from loadframe.system.files import Folder, Whose
from loadframe.workloads import command_lines
from loadframe.workloads.command_lines import Lines
from loadframe.workloads.command_output import Instant, Life, of_lines
from loadframe_drivers import access_log, har
from loadframe_drivers.jmeter import read_jtl
from loadframe_drivers.k6 import read_points
from loadframe_drivers.redis import read_memtier, read_report
from loadframe_fleet.agent import Agent as AnsweringAgent
from loadframe_fleet.check import host_facts
from loadframe_fleet.connection import Agent
from loadframe_fleet.connection import command as agent_command
from loadframe_fleet.declaration import HostTable
from loadframe_fleet.declaration import load as load_fleet
from loadframe_index import fanotify, inotify, recorded
from loadframe_pipelines.stage_lines import LARGEST
from loadframe_pipelines.stage_tail import MOST_PROCESSES, Tail
from loadframe_watch.child import fitted
from loadframe_watch.days import observed
from loadframe_watch.exporting import WATCH_FORMATS
from loadframe_watch.page import WatchView

MOST_REFRESHES = 4
MOST_SPREAD = 100_000
"""Requests of seconds that are spread: more take memory, and show nothing else."""


class WrongAnswerError(AssertionError):
    """A reader gave what it must not give."""


def read_recording(path: Path) -> None:
    """Salvaged, as a table, and as the metrics of windows."""
    with RecordingReader(path) as reader:
        ticks = reader.all_ticks()
    times = sorted(tick.monotonic_s for tick in ticks)
    windows = [(times[0], times[-1]), (times[len(times) // 3], times[-1] + 1)] if times else [(0.0, 1.0)]
    for start_s, end_s in windows:
        found = window_metrics(ticks, start_s, end_s, embedded=True)
        if any(value != value or abs(value) == float("inf") for value in found.values()):
            raise WrongAnswerError(f"a metric that is not finite: {found}")
    metric_series(path)


def read_expositions(paths: Sequence[Path], *, strict: bool) -> None:
    """What a service told, one answer after the other, by each reader; and what a run would say of them."""
    form = "application/openmetrics-text" if strict else "text/plain"
    for read in (partial(read_prometheus, content_type=form), read_json, read_lines):
        for path in paths:
            try:
                _check_exposed(read(path.read_bytes(), Pick(counters=("done",))))
            except ExpositionError:
                continue
    asked = Exposure([_Told(paths, form)], {"pool_in_use": "target.limit pool"})
    for _ in paths:
        with_quantiles(derived_metrics(asked.now()))
    for sentence in asked.missing():
        if not sentence.isprintable():
            raise WrongAnswerError(f"a sentence that cannot be printed: {sentence!r}")


class _Told:
    """A source whose answers are files, in turn."""

    words, pick = "a source", Pick()

    def __init__(self, paths: Sequence[Path], form: str) -> None:
        self._answers, self._form = iter(paths), form

    def take(self) -> Taken:
        return Taken(0.0, next(self._answers).read_bytes(), self._form)

    def read(self, taken: Taken) -> Exposed:
        return read_prometheus(taken.data, self.pick, content_type=taken.content_type)


def _check_exposed(found: Exposed) -> None:
    for name, value in found.values.items():
        if not math.isfinite(value) or not name.isprintable() or str(split(name)) != name:
            raise WrongAnswerError(f"{name!r} = {value}")


def damaged_within(rng: random.Random, data: bytes) -> bytes:
    """A recording with proper checksums over a block whose content is damaged: what a broken recorder writes."""
    _, start = parse_header(data, Path("x.lfr"))
    blocks = scan_blocks(data[start:], start).blocks
    if not blocks:
        return data
    block = rng.choice(blocks)
    raw = bytearray(zstandard.ZstdDecompressor().decompress(data[block.offset : block.offset + block.length]))
    for _ in range(rng.choice((1, 2, 10, 100))):
        at = rng.randrange(len(raw))
        match rng.randrange(4):
            case 0:
                raw[at] = rng.randrange(256)
            case 1:
                raw[at : at + 4] = rng.choice((b"\xff\xff\xff\xff", b"\0\0\0\0", b"9999", b"-1 \n"))
            case 2:
                raw[at : at + 8] = struct.pack("<d", rng.choice((float("nan"), float("inf"), -1.0, 1e300, 0.0)))
            case 3:
                digit = raw.find(rng.choice((b"0", b"1", b" ")), at)
                if digit >= 0:
                    raw[digit : digit + 1] = rng.choice((b"-", b"99999999999999999999", b"x", b""))
    frame = zstandard.ZstdCompressor().compress(bytes(raw))
    head = BLOCK_HEADER.pack(BLOCK_MAGIC, len(frame), len(raw), block.first_s, block.last_s, 0)[:-4]
    before = data[: block.offset - BLOCK_HEADER.size]
    return before + head + struct.pack("<I", zlib.crc32(head)) + frame + data[block.offset + block.length :]


def read_profile(path: Path) -> None:
    """As what perf prints, and as collapsed stacks, which are read back as they were written."""
    text = path.read_text(encoding="utf-8", errors="replace")
    samples = list(perf.read_samples(text.split("\n"), perf.Reading()))
    stacks = profiler.collapse(sample.frames for sample in samples)
    again = profiler.parse_stacks(profiler.render_stacks(stacks))
    if again.stacks != stacks or again.damaged:
        raise WrongAnswerError("collapsed stacks are not read back as they were written")
    profiler.parse_stacks(text)


PROC: Mapping[str, Callable[[bytes], Any]] = {
    "stat": procfs.parse_stat,
    "meminfo": procfs.parse_meminfo,
    "vmstat": procfs.parse_vmstat,
    "diskstats": procfs.parse_diskstats,
    "diskstats-physical": procfs.parse_diskstats,
    "pressure-cpu": procfs.parse_pressure,
    "pressure-io": procfs.parse_pressure,
    "pressure-memory": procfs.parse_pressure,
    "loadavg": procfs.parse_threads,
    "file-nr": procfs.parse_file_numbers,
    "process-stat": procfs.parse_process_stat,
    "process-status": procfs.parse_process_status,
    "process-io": lambda text: procfs.by_name(text, "io"),
    "process-limits": procfs.parse_limits,
    "process-schedstat": procfs.parse_schedstat,
    "net-tcp": lambda data: _listening(data, socket.AF_INET),
    "net-tcp6": lambda data: _listening(data, socket.AF_INET6),
}
"""By the name of the sample in tests/data/proc."""


def _listening(data: bytes, family: socket.AddressFamily) -> None:
    for line in data.decode("ascii", "replace").splitlines():
        found = listening.parse(line.split(), family)
        if found is not None and not 0 <= found.port < 2**16:
            raise WrongAnswerError(f"a port that is none: {found}")


def read_settings_file(format_: str, key: str, value: SettingValue, text: str) -> None:
    """A key set in it and read again; ValueError is the only refusal."""
    try:
        edited = file_settings.edited(text, format_, key, value)
        found = file_settings.found(edited, format_, key)
    except ValueError:
        return
    if format_ in ("toml", "json") and found != value:
        raise WrongAnswerError(f"{key} of {format_} was set to {value!r} and is {found!r}")


def read_access_log(path: Path) -> None:
    """Each line is a request that can be sent, or none; a damaged file is an OSError."""
    try:
        for line in access_log.lines(path):
            found = None if line is None else access_log.parse_line(line)
            if found is not None and wrong_path(found.path) is not None:
                raise WrongAnswerError("a path was read that cannot be sent")
    except OSError:
        return


def read_stages(path: Path) -> None:
    """Each line of statistics is read, counted as nonsense or passed over; what follows from them is finite."""
    tail = Tail()
    with tail.watching([], [path]):
        pass
    readings = tail.readings()
    if any(not 0 <= value <= LARGEST * MOST_PROCESSES for one in readings for value in one.counters.values()):
        raise WrongAnswerError("a number was read that no stage can tell")
    for one in readings:
        found = derived(one.counters)
        if not all(map(is_known, found)) or not all(map(math.isfinite, found.values())):
            raise WrongAnswerError("what follows from a line is no number, or has no name")


def read_watch(folder: Path) -> None:
    """The days of a watch: what was observed, the fit of it, and each format of an export."""
    table = observed(folder)
    if not all(map(math.isfinite, table.time_s)):
        raise WrongAnswerError("a time was read that is no number")
    fitted(table)
    for one in WATCH_FORMATS:
        exported(WATCH_FORMATS, folder, folder, one.name)


def read_watch_view(folder: Path) -> None:
    """The same folder on the live page, with its state."""
    held = Folder(folder, Whose.NAMED, RecordingError)
    view = WatchView(held, "0/watch")
    for _ in range(MOST_REFRESHES):
        view.refresh()
    view.row()
    write_json(view.whole())


def read_hsperfdata(path: Path) -> None:
    """Counters of a virtual machine, or ValueError, struct.error for what is none."""
    with suppress(ValueError, struct.error):
        places = jvm_sampling._places(path.read_bytes()[: jvm_sampling.MOST_BYTES])
        if any(not jvm_sampling.WANTED.fullmatch(name) or offset <= 0 for name, _, offset in places):
            raise WrongAnswerError("a counter was found that was not asked for")


DRIVERS: Mapping[str, Callable[[IO[bytes], list[str], bool], Lines]] = {
    "requests": lambda file, names, cut_off: command_lines.read(file, names, cut_off=cut_off),
    "seconds": lambda file, names, cut_off: command_lines.read(file, names, cut_off=cut_off),
    "k6": lambda file, names, cut_off: read_points(file, names),
    "jtl": lambda file, names, cut_off: read_jtl(file, names, cut_off=cut_off),
}
REPORTS: Mapping[str, Callable[[str], Any]] = {"redis": read_report, "memtier": read_memtier}


def read_driver(kind: str, data: bytes, cut_off: bool) -> None:
    """What a driver of the user's own printed: requests that can be, on the clock of its life, or LineError,
    ClockError; a report of its latencies, or ValueError."""
    try:
        if kind in REPORTS:
            report = REPORTS[kind](data.decode("utf-8", "replace"))
            parts = report[1] if isinstance(report, tuple) else (report,)
            if any(one.counts.sum() != one.requests or not 0 < one.length_s < math.inf for one in parts):
                raise WrongAnswerError("a report has other latencies than requests")
            return
        lines = DRIVERS[kind](io.BytesIO(data), ["request"], cut_off)
        if lines.in_seconds > MOST_SPREAD:
            return
        ends = sorted(lines.end_s) or [one.at_s for one in lines.seconds] or [0.0]
        life = Life(Instant(1000.0, ends[0] - 1.0), Instant(1020.0, ends[0] + 19.0))
        requests = of_lines(lines, life).requests
    except WrongAnswerError:
        raise
    except ValueError:  # LineError, ClockError
        return
    bounds = (requests.latency_ms >= 0) & (requests.end_s > 980.0) & (requests.end_s < 1040.0)
    if not bounds.all():
        raise WrongAnswerError("requests were read that are not of the step")


def read_fleet(path: Path) -> None:
    """A fleet file, and the command that would start each agent."""
    fleet = load_fleet(path)
    for host in fleet.host:
        if not host.worker:
            agent_command(host, fleet.fleet.ssh_config)


ANSWERS = (
    'exec 3<"$0"; IFS= read -r said <&3; printf "%s\\n" "$said"; while IFS= read -r asked; do case $asked in *ask*) '
    'IFS= read -r said <&3 || exit; printf "%s\\n" "$said";; esac; done'
)
"""A host that greets, and answers each question with the next line of a file, for a shell."""
ANSWERED_WITHIN_S = 0.3


def read_answers(path: Path, *, whole: bool) -> None:
    """What a host's agent says to its coordinator. whole: all at once, before anything is asked."""
    by = ["cat", str(path)] if whole else ["sh", "-c", ANSWERS, str(path)]
    host = HostTable(name="host", roles=["driver"], by=by)
    with Agent(host) as agent:
        with suppress(KeyError, TypeError, ValueError):  # as check.py
            host_facts(agent.facts)
        for question in ("clock", "cpus", "doctor"):
            agent.ask(question, ANSWERED_WITHIN_S)


def read_questions(data: bytes) -> None:
    """What a coordinator says to an agent: none that has it do anything."""
    with TemporaryFile() as asked, Path(os.devnull).open("wb") as sink:
        asked.write(data)
        asked.seek(0)
        agent = AnsweringAgent(asked.fileno(), sink.fileno())
        agent.work()
        agent.end()


def read_har(data: bytes) -> None:
    """Entries that were read, or HarError."""
    try:
        entries, _ = har.parse_har(data)
    except har.HarError:
        return
    if any(one.ended_s < one.started_s or not 0 <= one.status <= 599 for one in entries):
        raise WrongAnswerError("an entry ended before it began, or has a status that is none")


CHANGE_LOGS: Mapping[str, Callable[[bytes], Any]] = {
    "fanotify": lambda data: list(fanotify.events(data)),
    "inotify": lambda data: list(inotify.events(data)),
    "recorded": lambda data: [recorded.record_of(line) for line in data.splitlines()],
}


def read_change_log(kind: str, data: bytes) -> None:
    """Records of a change log, or what says that they are none; no path leads out of the tree."""
    try:
        found = CHANGE_LOGS[kind](data)
    except (fanotify.UnreadableEventError, inotify.UnreadableEventError, recorded.UnreadableRecordError):
        return
    if kind == "recorded" and any(b".." in path.split(b"/") for one in found for path in (one.path, one.to)):
        raise WrongAnswerError("a record leads out of the tree")


def read_proc(name: str, data: bytes) -> None:
    PROC[name](data)
