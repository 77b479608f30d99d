"""A private cluster without its SQL nodes: a management server and data nodes, each a component of its own."""

import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from loadframe.errors import StudyError, TargetError
from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.kinds.base import shard_name
from loadframe.kinds.catalogue import differing
from loadframe.kinds.private_server import LAST_LINES, START_TIMEOUT_S, do_all
from loadframe.model import SettingValue, TargetState
from loadframe_ndb.nodes import STARTED, DataNode, Management
from loadframe_ndb.own_settings import CATALOGUE, SETTING_BY_NAME, Shape, checked, config_text, read_full_config

MANAGER = "management"
LOOK_EVERY_S = 0.1
"""Each look starts a program, ndb_mgm, that takes 10 ms of CPU."""
NO_ROOM = re.compile(r"\berror: (625|827)\b")
"""The error of a data node whose DataMemory is full while it loads rows (restore.cpp), before it ends."""
LINES_AFTER_IT = 60
"""Lines after that error: a stack, and the end."""
Settings = Mapping[str, SettingValue]


class PrivateCluster:
    """A private cluster without SQL nodes. Settings: those of own_settings, in any form; StudyError for others."""

    def __init__(self, lease: Lease, resources: Mapping[str, Resources], shape: Shape) -> None:
        """resources: by component, "management", "shard1", "shard2", ...; one that is not named has no limits."""
        self.shape = shape
        names = [shard_name(number) for number in range(1, len(shape.data) + 1)]
        self._allowances = {
            name: resources.get(name, Resources()).run_by(lease.account("mysql")) for name in (MANAGER, *names)
        }
        self._limits: Mapping[str, int] = {}
        self.management = Management(lease, self._allowances[MANAGER].user)
        self.data = {
            name: DataNode(lease, self._allowances[name].user, name, number)
            for name, number in zip(names, shape.data, strict=True)
        }
        self._nodes = {MANAGER: self.management, **self.data}
        self._settings: Settings | None = None
        self._has_data = False
        self._grown = 0
        self.lost_data = 0
        """How often the data nodes began with empty file systems because their rows did not fit."""

    def create(self) -> None:
        """MissingTool; TargetError where no folders can be made."""
        for node in self._nodes.values():
            node.create()

    def allow(self, limits: Mapping[str, int]) -> None:
        """Set limits of each data node's process, in addition to those of its allowance, from the next start on."""
        self._limits = limits

    def check(self, settings: Settings) -> dict[str, SettingValue]:
        """Have the management server check them; nothing is started or stopped."""
        wanted = self.wanted(settings)
        text = self._config(wanted, self.management.port or 1186)
        said = self.management.check(TargetState(wanted), text, self.shape.management, self._allowances[MANAGER])
        return read_full_config(said)

    def start(self, settings: Settings) -> None:
        """Returns once all nodes are started. The first start makes the file systems."""
        wanted = self.wanted(settings)
        if self._settings is not None:
            raise TargetError("The cluster is running already", remedy="Use apply, or stop it first.")
        self._settings = wanted
        with self._room_or_nothing(wanted):
            self._start_management()
            self._start_data(self.data, initial=not self._has_data)
        self._has_data = True

    def apply(self, settings: Settings) -> None:
        """Go to other settings with as few restarts as possible; the data stay, and with two copies the cluster answers
        where the settings allow it. TargetError, before any restart, where data would be lost; but rows that no longer
        fit into a smaller DataMemory are lost, and `lost_data` grows."""
        old, wanted = self._running(), self.wanted(settings)
        ways = stages(old, wanted, _number(old, "NoOfReplicas"))
        with self._room_or_nothing(wanted):
            for stage in ways:
                self._settings = stage.settings
                self._go(stage.restart)
        self._settings = wanted

    def heal(self) -> tuple[str, ...]:
        """Start the data nodes that died while the others went on; their names. TargetError where the cluster ended."""
        self.check_alive()
        dead = self.dead()
        if dead:
            self._start_data(dead)
        return tuple(dead)

    def stop(self) -> None:
        """The data stay. Does nothing where it does not run."""
        if self._settings is None:
            return
        self._stop_all()
        self._settings = None

    def destroy(self) -> None:
        """Never raises."""
        self._settings = None
        for node in (*self.data.values(), self.management):
            node.destroy()

    def wanted(self, settings: Settings) -> dict[str, SettingValue]:
        """The settings in canonical form. StudyError where the number of data nodes is no multiple of the copies."""
        wanted = checked(settings)
        replicas = _number(wanted, "NoOfReplicas")
        if len(self.data) % replicas:
            raise StudyError(
                f"target.settings.NoOfReplicas = {replicas}: no number of copies for {len(self.data)} data node"
                f"{'' if len(self.data) == 1 else 's'}, which must be a multiple of it",
                remedy="Give NoOfReplicas = 1, or a multiple of that many data nodes.",
            )
        return wanted

    def states(self) -> dict[str, str]:
        states = self.management.states()
        return {name: states.get(node.number, "unknown") for name, node in self.data.items()}

    def answers(self) -> bool:
        """Whether of each group of data nodes one is started. Never raises."""
        if self._settings is None:
            return False
        down = [name for name, state in self.states().items() if state != STARTED]
        return self.lost(down, self._settings) is None

    def dead(self) -> list[str]:
        return [name for name, node in self.data.items() if node.died() is not None]

    def check_alive(self) -> None:
        """TargetError where it does not run, its management server has died, or a part of its data has no copy left."""
        settings = self._running()
        if (error := self.management.died()) is not None:
            raise error
        dead = self.dead()
        if (why := self.lost(dead, settings)) is not None:
            last = self.data[dead[0]].died()
            raise TargetError(why, remedy=LAST_LINES, details=last.details if last is not None else "")

    def processes(self) -> dict[str, tuple[int, ...]]:
        return {name: () if node.pid is None else (node.pid,) for name, node in self._nodes.items()}

    def lost(self, dead: Iterable[str], settings: Settings) -> str | None:
        """Why the cluster has ended without these data nodes; None where each group has one left."""
        names, gone, replicas = list(self.data), set(dead), _number(settings, "NoOfReplicas")
        for first in range(0, len(names), replicas):
            if gone.issuperset(group := names[first : first + replicas]):
                ended = " and ".join(group)
                return f"The cluster has ended: no copy is left of the data of {ended} (NoOfReplicas = {replicas})"
        return None

    def log_tail(self, lines: int = 20) -> str:
        tails = {name: node.log_tail(lines) for name, node in self._nodes.items()}
        return "\n".join(f"{name}:\n{tail}" for name, tail in tails.items() if tail)

    def _running(self) -> Settings:
        if self._settings is None:
            raise TargetError("The cluster is not running", remedy="Start it first.", details=self.log_tail())
        return self._settings

    def _config(self, settings: Settings, port: int) -> str:
        numbered = {node.number: node.data for node in self.data.values()}
        numbered[self.shape.management] = self.management.data
        return config_text(self.shape, settings, port=port, folders=numbered)

    def _start_management(self) -> None:
        self.management.take_port()
        assert self.management.port is not None, "it has just been taken"
        text = self._config(self._running(), self.management.port)
        self.management.start(text, self.shape.management, self._allowances[MANAGER])

    def _start_data(self, names: Iterable[str], *, initial: bool = False) -> None:
        names = list(names)
        for name in names:
            given = self._allowances[name]
            allowance = replace(given, limits={**given.limits, **self._limits})
            self.data[name].start(self.management, allowance, initial=initial)
        self._await(names, "would not start")

    def _go(self, restart: "Restart") -> None:
        if restart == "system":
            self._stop_all()
            self._start_management()
            self._start_data(self.data)
            return
        self.management.kill()
        self._start_management()
        self._await(self.data, "died")  # it commands no node before it is in touch with it again
        for name, node in self.data.items():  # the others go on meanwhile
            self.management.carry_out(f"{node.number} STOP")
            node.ended()
            self._start_data([name], initial=restart == "rolling, initial")

    @contextmanager
    def _room_or_nothing(self, wanted: Settings) -> Iterator[None]:
        """Data nodes with less DataMemory than before, whose rows do not fit any more, begin again without rows."""
        memory = _number(wanted, "DataMemory")
        try:
            yield
        except TargetError:
            if not self._has_data or memory >= self._grown or not NO_ROOM.search(self.log_tail(LINES_AFTER_IT)):
                raise
            for node in self._nodes.values():
                node.kill()
            self._settings = wanted
            self._start_management()
            self._start_data(self.data, initial=True)
            self.lost_data += 1
            self._grown = 0
        self._grown = max(self._grown, memory)

    def _await(self, names: Collection[str], how: str) -> None:
        """TargetError where one dies (how: in words), or it takes too long."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while any(self.states()[name] != STARTED for name in names):
            for name in (*names, *(other for other in self.data if other not in names)):
                if (error := self.data[name].died(how if name in names else "died")) is not None:
                    raise error
            if (error := self.management.died()) is not None:
                raise error
            if time.monotonic() > deadline:
                late = ", ".join(f"{name} is {state}" for name, state in self.states().items())
                raise TargetError(
                    f"The cluster has not started after {START_TIMEOUT_S:.0f} s: {late}",
                    remedy=LAST_LINES,
                    details=self.log_tail(),
                )
            time.sleep(LOOK_EVERY_S)

    def _stop_all(self) -> None:
        """All data nodes together, so that nothing committed is lost; nodes that cannot be commanded are killed."""
        living = [node for node in self.data.values() if node.died() is None]
        try:
            if living and self.management.died() is None:
                self.management.carry_out("SHUTDOWN")
        except TargetError:
            living = []
        ends = [node.ended if node in living else node.kill for node in self.data.values()]
        do_all((*ends, self.management.kill))


def _number(settings: Settings, name: str) -> int:
    value = settings.get(name, CATALOGUE.known(name).default)
    assert isinstance(value, int), "it is a number in canonical form"
    return value


Restart = Literal["rolling", "rolling, initial", "system"]
"""The data nodes in turn, while the cluster answers; the same, each with an empty file system, which it fills from the
other node of its group; all at once, from their disks."""
OF_SETTING: Mapping[str, Restart] = {"N": "rolling", "IN": "rolling, initial", "S": "system", "": "system"}
"""The restart that a setting takes, by settings.RESTARTS; where it is unknown, all of it restarts."""
NEVER = "IS"
"""The key of RESTARTS of settings of which only a cluster without data can have another value."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A restart, and the settings with which the nodes come back."""

    restart: Restart
    settings: Settings


def changed(old: Settings, new: Settings) -> list[str]:
    """A missing setting differs even from its default, which a version may have changed."""
    names, defaults = differing(old, new), CATALOGUE.defaults()
    ends = differing({**defaults, **old}, {**defaults, **new})
    return [name for name in names if name in ends or SETTING_BY_NAME[name].restart != NEVER]


def stages(old: Settings, new: Settings, replicas: int) -> Sequence[Stage]:
    """The restarts, in order. TargetError where the data would not survive them."""
    needed = {name: _restart(name, replicas) for name in changed(old, new)}
    initial = [name for name, restart in needed.items() if restart == "rolling, initial"]
    restarts = []
    if "system" in needed.values():
        others = {name: value for name, value in new.items() if name not in initial}
        restarts.append(Stage("system", {**others, **{name: old[name] for name in initial if name in old}}))
    if initial:
        restarts.append(Stage("rolling, initial", new))
    if needed and not restarts:
        restarts.append(Stage("rolling", new))
    return restarts


def _restart(name: str, replicas: int) -> Restart:
    needed = SETTING_BY_NAME[name].restart
    if needed == NEVER:
        raise TargetError(
            f"{name} cannot be changed in a cluster that has data",
            remedy="Give it in target.settings: the cluster starts with it.",
        )
    restart = OF_SETTING[needed]
    if replicas > 1:
        return restart
    if restart == "rolling, initial":
        raise TargetError(
            f"{name} takes a data node that starts with an empty file system, and with NoOfReplicas = 1 there is no "
            "other copy of its data",
            remedy="Give it in target.settings, or set NoOfReplicas = 2.",
        )
    return "system"
