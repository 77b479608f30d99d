"""A target on the bench: in its cages, brought to one state at a time, every change of it through the journal."""

from __future__ import annotations

import contextlib
import os
import signal

from loadframe.bench.caged import CagedTarget
from loadframe.changes.journal import Journal
from loadframe.model import SettingValue, TargetState
from loadframe.runs.folder import RunFolder
from loadframe.workloads.base import Workload


class Rig:
    """target: created already, not started yet; whoever made it destroys it. Start at a state with `bring`."""

    def __init__(self, target: CagedTarget, run: RunFolder) -> None:
        self.target = target
        self._journal = Journal(run, target)
        self._first: TargetState | None = None
        self._now: TargetState | None = None
        self._installed = False

    def bring(self, treatment: str, state: TargetState, workload: Workload) -> dict[str, SettingValue]:
        """The target in this state, with the workload's data in it; answers what it really uses."""
        if self._now is None:
            self.target.start(state)
            self._first = state if self._first is None else self._first
        elif self._now != state:
            before, self._now = self._now, None  # not known until the change has succeeded
            try:
                self._journal.go(treatment, before, state)
            except BaseException:
                self.target.stop()  # half changed, perhaps: the next call starts it anew
                raise
        self._now = state
        if not self._installed:
            workload.install(self.target.endpoint())
            self._installed = True
        return self.target.effective()

    def kill(self) -> None:
        """SIGKILL for its processes, as a crash would have it; `stop` has to follow."""
        for pid in self.target.pids():
            with contextlib.suppress(ProcessLookupError):  # the first one's end has ended it
                (os.killpg if os.getpgid(pid) == pid else os.kill)(pid, signal.SIGKILL)

    def stop(self) -> None:
        """End the target, whatever has become of it; the next `bring` starts it anew."""
        self.target.stop()
        self.close()

    def empty(self) -> None:
        """End the target and have it forget what it has cached; the next `bring` starts it anew."""
        self.stop()
        self.target.empty()

    def close(self) -> None:
        """The target has ended, or is about to: what was changed since its first start ends with it."""
        if self._first is not None and self._now is not None:
            self._journal.close(self._now, self._first)
        self._now = None
