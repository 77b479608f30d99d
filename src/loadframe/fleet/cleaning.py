"""What a process of ours that was killed, or gave up, has left on this host: put back, ended and removed, by a process
of its own. The next command on this host would do the same; but there may be none for a day."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from loadframe.changes import lists
from loadframe.changes.lists import Record
from loadframe.errors import UserError
from loadframe.host.environment import NO_FOLDER, own_environment, python
from loadframe.host.to_its_end import ended, told

CLEANED_WITHIN_S = 60.0
MOST_WORDS = 2000


@dataclass(frozen=True, slots=True)
class Standing:
    """What is changed and not put back: what, in words, and how long putting it back may take (s)."""

    words: str = ""
    within_s: float = 0.0


def standing_of(owner: int) -> Standing:
    """Of the process with this number."""
    return _standing(each for each in _lists() if each.owner.pid == owner and each.alive())


def cleaned_up(given: Mapping[str, str] | None = None) -> str:
    """Wait until it is done; what was done, in words. given: the environment of the process that left it, ours where
    there is none. Never raises because of what is left: what cannot be put back is said."""
    within_s = CLEANED_WITHIN_S + _standing(each for each in _lists() if not each.alive()).within_s
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            python("loadframe.fleet.worker", "--clean-up"), stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            cwd=NO_FOLDER, env=own_environment(given), start_new_session=True,
        )  # fmt: skip
        if not ended(process, said, within_s):
            process.kill()
            process.wait()
        words = " ".join(told(said).split())[-MOST_WORDS:]
    if process.returncode < 0:
        late = f"Not all of what it left was put back within {within_s:g} s; the next command there tries again"
        return f"{words} {late}".strip()
    return words


def _standing(records: Iterable[Record]) -> Standing:
    changes = [change for record in records for change in record.changes]
    if not changes:
        return Standing()
    from loadframe.bench.places import places  # imports all kinds

    known = places()
    words = ", ".join(dict.fromkeys(f"{each.setting} of {each.words}" for each in changes))
    kinds = [known[each.place["kind"]] for each in changes if each.place["kind"] in known]
    return Standing(words, sum(kind.longest_s for kind in kinds))


def _lists() -> list[Record]:
    try:
        return lists.read()
    except UserError:  # of the state directory, which whoever puts back says
        return []
