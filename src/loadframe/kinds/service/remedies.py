"""Remedies for any service: what the kernel allows its processes."""

from loadframe.knowledge.remedy import NOFILE, OPEN_FILES, Builders, Situation, link, more_open_files
from loadframe.model import Remedy


def _raise_open_files(situation: Situation) -> Remedy | None:
    if situation.target_kind != "service":
        return None
    why = "the files open at the highest level, plus a fifth; where that is not known, four times as many"
    return more_open_files(situation, lambda files: (link(situation, "process", NOFILE, files, why),))


BUILDERS: Builders = {OPEN_FILES: (_raise_open_files,)}
