"""What a step of metadata-index left in the database: whether all that was acknowledged is there, and its answers
compared with those of du and find on the same tree."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from loadframe.errors import MissingTool, StudyError
from loadframe.model import AnswersCompared
from loadframe.workloads import step_files
from loadframe_index import comparing
from loadframe_index import config as configs
from loadframe_index.answers import Wanted
from loadframe_index.config import Config
from loadframe_index.store import Store

BESIDE = "du and find"
OTHER_SIZE = 0.1
"""A user's tree may be larger or smaller than the level by this share: it may change meanwhile."""
LARGE_BYTES = 1 << 20
WANTED = {
    "directories": Wanted(type="d"),
    "files of more than 1 MiB": Wanted(type="f", larger_than=LARGE_BYTES),
}


def compared(store: Store, tree: Path, of: str, load: float) -> AnswersCompared:
    """Each answer with that of du or find. of, load: of that tree. Raises WorkloadError, StoreError."""
    try:
        answers = comparing.compare_usage(store, tree)
        for what, wanted in WANTED.items():
            count, bytes_ = comparing.compare_find(store, tree, wanted)
            answers += [replace(count, answer=what), replace(bytes_, answer=f"bytes of {what}")]
    except MissingTool as error:
        return AnswersCompared(of, load, BESIDE, missing=error.fact)
    return AnswersCompared(of, load, BESIDE, tuple(answers))


def differing(compared: AnswersCompared) -> list[str]:
    """What differs, in words."""
    return [
        f"{answer.answer}: the database says {answer.target:,}, {BESIDE} {answer.other:,}"
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
    """Raises StudyError after a whole scan of a user's tree whose size is not the level's."""
    there = store.count()
    if whole_scans(config) and not load * (1 - OTHER_SIZE) <= there <= load * (1 + OTHER_SIZE):
        raise StudyError(
            f"load.levels has {load:,.0f} entries, and workload.options.tree = {config.tree!r} has {there:,}.",
            remedy=f"Give levels = [{there}]; or omit the tree, and one of each size is made.",
        )


def whole_scans(config: Config) -> int:
    """How many scans completed; 0 for a pipeline that was killed."""
    return len(json.loads(step_files.text(config.path(configs.RESULT)) or "{}").get("scans", []))
