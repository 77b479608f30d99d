"""Varnish, as a private instance before an origin of its own: own folder, own port of 127.0.0.1, an unprivileged user.

What is asked for comes from the origin, an nginx that serves the files below `Endpoint.options["files"]`. What Varnish
has stored ends with its cache process, whatever the storage: a restart leaves a cold cache.
"""

from __future__ import annotations

import http.client
from collections.abc import Callable, Mapping
from pathlib import Path

from loadframe.errors import StudyError, TargetError
from loadframe.host.leases import Lease
from loadframe.host.processes import Allowance
from loadframe.http_connection import ERRORS, Connection
from loadframe.kinds.catalogue import SettingSpec, canonical, differing
from loadframe.kinds.origin import Origin
from loadframe.kinds.private_server import soft_nofile
from loadframe.kinds.private_target import NOFILE, PrivateTarget, run_by
from loadframe.kinds.varnish.counters import Counters
from loadframe.kinds.varnish.server import SETTINGS_OF_STORAGE, Server, required, version
from loadframe.kinds.varnish.settings import CATALOGUE, CEILINGS, COUNTERS
from loadframe.model import CounterSpec, Endpoint, SettingValue, TargetState

TIMEOUT_S = 5.0


class VarnishTarget(PrivateTarget[Server]):
    """See targets.base.Target.

    A change of state sets parameters, and restarts where a setting that differs needs one, or a limit of the processes.
    """

    kind = "varnish"
    counter_specs: tuple[CounterSpec, ...] = (*COUNTERS.values(), *CEILINGS)

    def __init__(
        self, *, lease: Lease, allowance: Allowance, port: int = 0, log: Callable[[str], None] = lambda _: None
    ) -> None:
        """lease: its folder holds all. allowance: without a user, "vcache", "varnish" or "nobody" when we are root.
        port: 0 for a free one. log: is told of starts and changes."""
        allowance = run_by(allowance, "vcache", "varnish")
        server = Server(lease, allowance.user, port)
        super().__init__(server, allowance, log, data=server.store)
        self._origin = Origin(lease, "origin-of-varnish")
        self._counters = Counters(server.directory)
        self._effective: dict[str, SettingValue] = {}
        self._cache: int | None = None

    # --- life -------------------------------------------------------------------------------------------------------

    def create(self) -> None:
        """MissingTool without Varnish or nginx; TargetError where a folder cannot be made."""
        self._server.create()
        self._origin.create()

    def check(self, state: TargetState) -> None:
        """`varnishd -C`."""
        wanted = self._wanted(state)
        self._server.check(wanted, _complete(wanted.settings), self._allowed(wanted))

    def start(self, state: TargetState) -> None:
        """Start the origin and the cache with these settings and limits, and wait until it answers."""
        wanted = self._to_start(state)
        self._origin.start()
        self._server.start(_complete(wanted.settings), self._origin.address, self._allowed(wanted), self._answers)
        self._entered(wanted)
        self._tell_start(wanted)

    def apply(self, state: TargetState) -> None:
        """Set parameters where that leads to the same as a restart with this state would, else restart."""
        current = self._running()
        wanted = self._wanted(state)
        changed = differing(_complete(current.settings), _complete(wanted.settings))
        if wanted.limits != current.limits or not all(_spec(name).dynamic for name in changed):
            self._log(f"Varnish restarts to change {', '.join(changed) or NOFILE}")
            super().stop()
            self.start(wanted)
            return
        for name in changed:
            self._server.set_parameter(name, _complete(wanted.settings)[name])
        if changed:
            self._log(f"Varnish takes new values of {', '.join(changed)}")
            self._entered(wanted)

    def reset(self) -> None:
        """What it has stored is part of what is measured, and counters are read as they grow. It has to run."""
        self._running()

    def stop(self) -> None:
        """Stop the cache and its origin; the origin's files stay, what was cached does not."""
        super().stop()
        self._origin.stop()

    def empty(self) -> None:
        """Nothing: its stop has forgotten what was cached."""

    def destroy(self) -> None:
        """End both and remove their folders; the lease stays its owner's."""
        super().destroy()
        self._origin.destroy()

    # --- what it is and does now ------------------------------------------------------------------------------------

    def effective(self) -> dict[str, SettingValue]:
        """What `param.show` says, the storage as it was started with, and the descriptors as the kernel has them."""
        self._running()
        return {**self._effective, NOFILE: soft_nofile(self._cache)}

    def counters(self) -> dict[str, float]:
        """varnishstat's, and the ceilings that belong to them."""
        self._running()
        self._origin.check()
        found = self._counters.read()
        effective = self._effective
        return {
            **{spec.name: float(found[vsc]) for vsc, spec in COUNTERS.items() if vsc in found},
            "threads_allowed": float(effective["thread_pools"]) * float(effective["thread_pool_max"]),
            "storage_size": float(effective["storage_size"]),
        }

    def pids(self) -> tuple[int, ...]:
        """The manager, then the cache process."""
        return tuple(pid for pid in (self._server.pid, self._cache) if pid is not None and self._server.pid is not None)

    def endpoint(self) -> Endpoint:
        """address: host and port. options: `origin`, the same of the origin; `files`, the folder that it serves."""
        options = {"files": str(self._origin.files), "origin": self._origin.address}
        return Endpoint(self.kind, f"127.0.0.1:{self._server.port}", options)

    def healthy(self) -> bool:
        """Whether it answers a request now."""
        return self._server.pid is not None and self._answers()

    def version(self) -> str:
        return version(required("varnishd"))

    def describe(self) -> Mapping[str, str]:
        return {**super().describe(), "origin": f"a private nginx before {self._origin.files}"}

    # --- inside -----------------------------------------------------------------------------------------------------

    def _canonical(self, settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
        return check_settings(settings)

    def _hang_up(self) -> None:
        self._counters.close()

    def _running(self) -> TargetState:
        state = super()._running()
        if not Path(f"/proc/{self._cache}").exists():
            raise TargetError(
                "Varnish's cache process has ended, and with it what was cached; its manager starts another one",
                remedy="Was it out of memory? Its last log lines say so.",
                details=self.log_tail(),
            )
        return state

    def _answers(self) -> bool:
        """Whether it says anything at all to a request that the origin cannot serve."""
        connection = Connection(self._server.socket, within_s=TIMEOUT_S, silent_s=TIMEOUT_S)
        try:
            return connection.get("/loadframe-is-it-there").status == http.client.NOT_FOUND
        except ERRORS:
            return False
        finally:
            connection.close()

    def _entered(self, state: TargetState) -> None:
        """After a start or a change: remember what the server uses now."""
        self._state, self._cache = state, self._server.cache_process()
        stands = self._server.parameters()
        asked = _complete(state.settings)
        self._effective = {
            spec.name: asked[spec.name] if spec.name in SETTINGS_OF_STORAGE else _read(spec, stands.get(spec.name))
            for spec in CATALOGUE.specs
        }


def check_settings(settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
    """In canonical form. StudyError."""
    return CATALOGUE.check(settings)


def _complete(settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
    """With our defaults for what is not asked for: some are not Varnish's own."""
    defaults = {spec.name: spec.default for spec in CATALOGUE.specs if spec.default is not None}
    return {**defaults, **settings}


def _spec(name: str) -> SettingSpec:
    spec = CATALOGUE.get(name)
    assert spec is not None, f"{name} is in the catalogue"
    return spec


def _read(spec: SettingSpec, text: str | None) -> SettingValue:
    """A parameter as Varnish tells it, in canonical form."""
    if text is None:
        return 0 if spec.default is None else spec.default
    try:
        return canonical("varnish", spec, text)
    except StudyError:  # nothing that we would set, but true all the same
        return text
