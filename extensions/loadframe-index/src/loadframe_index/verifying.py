"""What a step of metadata-index left in the database: whether all that was acknowledged is there, and its answers
compared with those of du(1) and find(1) on the same tree, run as their user on one file system (-x, -xdev). Raises
MissingTool, WorkloadError, StoreError."""

import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from loadframe.errors import MissingTool, StudyError, WorkloadError
from loadframe.host.environment import located
from loadframe.model import AnswerCompared, AnswersCompared
from loadframe.workloads import step_files
from loadframe_index.beneath import joined, shown
from loadframe_index.config import RESULT, Config
from loadframe_index.entries import id_of
from loadframe_index.queries import Wanted, find, usage
from loadframe_index.store import Store

PATIENCE_S = 3600.0
MOST_NAMED = 20
ERROR_BYTES = 4000
READ_BYTES = 1 << 20


def compare_usage(store: Store, root: Path, under: bytes = b"") -> list[AnswerCompared]:
    """Bytes on the disk, apparent bytes, and the number of entries."""
    ours, full = usage(store, under), _full(root, under)
    with tempfile.TemporaryDirectory(prefix="loadframe-") as empty:  # coreutils before 9.2 count it, too
        counts_directories = _du(os.fsencode(empty), "-b") > 0
    own_apparent = ours.apparent_bytes if counts_directories else ours.file_bytes
    entries = sum(1 for _ in listed(full, [], r"%P\0", 1))
    return [
        AnswerCompared("bytes on disk", ours.bytes_on_disk, _du(full, "-B1")),
        AnswerCompared("apparent bytes", own_apparent, _du(full, "-b")),
        AnswerCompared("entries", ours.entries, entries),
    ]


def compare_find(store: Store, root: Path, wanted: Wanted) -> list[AnswerCompared]:
    """The number of entries found, their bytes, and which they are."""
    ours = {entry.id: entry for entry in find(store, wanted)}
    count, own_bytes = len(ours), sum(entry.size for entry in ours.values())
    entries = bytes_ = 0
    only_theirs: list[bytes] = []
    for path, size in listed(_full(root, wanted.under), conditions(wanted), r"%P\0%s\0", 2):
        entries, bytes_ = entries + 1, bytes_ + int(size)
        path = joined(wanted.under, path) if path else wanted.under
        if ours.pop(id_of(path), None) is None and len(only_theirs) < MOST_NAMED:
            only_theirs.append(path)
    only_ours = [entry.path for entry in list(ours.values())[:MOST_NAMED]]
    differences = only("find", only_theirs) + only("the database", only_ours)
    return [
        AnswerCompared("entries found", count, entries, differences),
        AnswerCompared("bytes found", own_bytes, bytes_),
    ]


def conditions(wanted: Wanted) -> list[str | bytes]:
    arguments: list[str | bytes] = []
    if wanted.name is not None and not wanted.under:
        arguments += ["-mindepth", "1"]
    if wanted.name is not None:
        arguments += ["-name", wanted.name]
    tests = {
        "-type {}": wanted.type,
        "-size +{}c": wanted.larger_than,
        "-size -{}c": wanted.smaller_than,
        "-newermt @{}": wanted.modified_after_s,
        "! -newermt @{}": wanted.modified_before_s,
        "-uid {}": wanted.uid,
    }
    for test, value in tests.items():
        arguments += test.format(value).split() if value is not None else []
    return arguments


def only(who: str, paths: Sequence[bytes]) -> tuple[str, ...]:
    return tuple(f"only {who} has {shown(path)}" for path in paths)


def _full(root: Path, path: bytes) -> bytes:
    """From "/" on, so that it is no option of find or du."""
    return os.fsencode(root.absolute()) + (b"/" + path if path else b"")


def _located(program: str) -> str:
    path = located(program)
    if path is None:
        raise MissingTool(f"{program} is not installed", remedy="Install Debian's coreutils and findutils.")
    return path


def _du(full: bytes, unit: str) -> int:
    command: list[str | bytes] = [_located("du"), "-sx", unit, "--", full]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, check=False, env=_environment()
        )
    except subprocess.TimeoutExpired as error:
        raise _late("du") from error
    number = done.stdout.partition(b"\t")[0]
    if not number.isdigit():
        raise WorkloadError(
            f"du gave no number of bytes for {shown(full)}.",
            remedy="Check that the folder is there and can be read; what du said is below.",
            details=done.stderr[-ERROR_BYTES:].decode("utf-8", "backslashreplace").strip(),
        )
    return int(number)


def _environment() -> dict[str, str]:
    named = ("BLOCKSIZE", "BLOCK_SIZE", "DU_BLOCK_SIZE", "POSIXLY_CORRECT")
    return {**{name: value for name, value in os.environ.items() if name not in named}, "LC_ALL": "C"}


def _late(program: str) -> WorkloadError:
    return WorkloadError(f"{program} did not end within {PATIENCE_S:,.0f} s", remedy="Compare a smaller tree.")


def listed(full: bytes, wanted: Sequence[str | bytes], printed: str, fields: int) -> Iterator[list[bytes]]:
    """The fields that find prints for each entry. WorkloadError also where it is late."""
    command: list[str | bytes] = [_located("find"), "-P", full, "-xdev", *wanted, "-printf", printed]
    running = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_environment()
    )
    late = threading.Event()

    def end() -> None:
        late.set()
        running.kill()

    timer = threading.Timer(PATIENCE_S, end)
    timer.start()
    try:
        yield from _entries(running, fields)
    finally:
        timer.cancel()
        with suppress(ProcessLookupError):
            running.kill()
        running.communicate()
    if late.is_set():
        raise _late("find")


def _entries(running: subprocess.Popen[bytes], fields: int) -> Iterator[list[bytes]]:
    assert running.stdout is not None
    rest, values = b"", list[bytes]()
    while data := running.stdout.read(READ_BYTES):
        *more, rest = (rest + data).split(b"\0")
        values += more
        whole = len(values) - len(values) % fields
        for at in range(0, whole, fields):
            yield values[at : at + fields]
        del values[:whole]
    if running.wait() >= 0 and (rest or values):
        raise WorkloadError("find ended amid an entry", remedy="Compare again: is the disk of the output full?")


# --- what a step left ---

REFERENCE = "du and find"
OTHER_SIZE = 0.1
"""A user's tree may be larger or smaller than the level by this share: it may change meanwhile."""
WANTED = {"directories": Wanted(type="d"), "files of more than 1 MiB": Wanted(type="f", larger_than=1 << 20)}


def compared(store: Store, tree: Path, of: str, load: float) -> AnswersCompared:
    """Each answer with du's or find's. of, load: of the tree."""
    try:
        answers = compare_usage(store, tree)
        for what, wanted in WANTED.items():
            count, bytes_ = compare_find(store, tree, wanted)
            answers += [replace(count, answer=what), replace(bytes_, answer=f"bytes of {what}")]
    except MissingTool as error:
        return AnswersCompared(of, load, REFERENCE, missing=error.fact)
    return AnswersCompared(of, load, REFERENCE, tuple(answers))


def differing(compared: AnswersCompared) -> list[str]:
    return [
        f"{answer.answer}: the database says {answer.target:,}, {REFERENCE} {answer.other:,}"
        + (f" ({answer.differences[0]})" if answer.differences else "")
        for answer in compared.answers
        if not answer.equal
    ]


def lacking(store: Store, config: Config, of_tree: int | None) -> str:
    """What is missing, in words, or "". Entries count by the first 8 bytes of their ids. of_tree: whether we made the
    tree."""

    def numbers(ids: bytes) -> Any:
        whole_ids = ids[: len(ids) - len(ids) % 16]  # a killed pipeline may have torn the last one
        return np.unique(np.frombuffer(whole_ids, dtype="<u8")[::2])

    sent = numbers(b"".join(step_files.read(config.applied(process)) for process in range(config.scanners)))
    there = numbers(b"".join(store.ids()))
    if lost := len(np.setdiff1d(sent, there, assume_unique=True)):
        return f"{lost:,} of {len(sent):,} entries are not there"
    if whole_scans(config) and of_tree is not None and len(there) != of_tree:
        return f"after a whole scan it has {len(there):,} entries, the tree {of_tree:,}"
    return ""


def check_size(store: Store, config: Config, load: float) -> None:
    """StudyError after a whole scan of a user's tree whose size is not the level's."""
    there = store.count()
    if whole_scans(config) and not load * (1 - OTHER_SIZE) <= there <= load * (1 + OTHER_SIZE):
        raise StudyError(
            f"load.levels has {load:,.0f} entries, and workload.options.tree = {config.tree!r} has {there:,}.",
            remedy=f"Give levels = [{there}]; or omit the tree, and one of each size is made.",
        )


def whole_scans(config: Config) -> int:
    """0 for a pipeline that was killed."""
    return len(json.loads(step_files.text(config.path(RESULT)) or "{}").get("scans", []))
