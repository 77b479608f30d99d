"""What every target must do, in each of its forms: of one piece, or of shards with or without something before them.

    from loadframe.testing.targets import *

    @pytest.fixture(scope="module", params=["toy", "sharded toy"])
    def form(request): return request.param

    @pytest.fixture(scope="module")
    def example(): return Example(...)

in a module of tests is the whole suite of a kind whose endpoint has a folder of files (`options["files"]`). Another
kind has a fixture `data` of its own.
"""

import os
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pytest

from loadframe.diagnosis.remedies import BUILDERS
from loadframe.diagnosis.signatures import SIGNATURES
from loadframe.errors import StudyError, TargetError
from loadframe.host import identity
from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.kinds import registry
from loadframe.kinds.base import Cache, Target
from loadframe.kinds.kind import KindOfTarget
from loadframe.ledger.rules import RULES
from loadframe.metrics import METRICS
from loadframe.metrics.agreements import OF_SERVERS
from loadframe.model import Endpoint, SettingValue, TargetState
from loadframe.testing.calls_by_path import audited
from loadframe.testing.leases import lease as lease
from loadframe.testing.leases import leased
from loadframe.testing.leases import scratch as scratch

State = Mapping[str, SettingValue]
RATES = {"1/s", "bytes/s", "s/s"}
SHARDS = 2


@dataclass(frozen=True)
class Example:
    """One state to start with, one that differs in what can change while it runs, one in what cannot. misspelt: a name
    that no setting has, and the one that is meant. wrong: a value that its setting does not take. impossible: each
    value is one that its setting takes; the server would not start with them."""

    start: State
    dynamic: State
    restart: State
    misspelt: tuple[str, str]
    wrong: State
    impossible: State = field(default_factory=dict)


class Data(Protocol):
    """What a workload leaves with a target: made, looked for and removed by nothing but the endpoint."""

    def store(self, endpoint: Endpoint) -> None: ...

    def stored(self, endpoint: Endpoint) -> bool: ...

    def forget(self, endpoint: Endpoint) -> None:
        """Also where nothing is stored."""


class File:
    """In the folder of files that an HTTP server, or a cache's origin, serves."""

    def store(self, endpoint: Endpoint) -> None:
        self._path(endpoint).write_text("1")

    def stored(self, endpoint: Endpoint) -> bool:
        with urllib.request.urlopen(f"http://{endpoint.address}/jobs", timeout=10) as answer:
            return bool(answer.read() == b"1")

    def forget(self, endpoint: Endpoint) -> None:
        self._path(endpoint).unlink(missing_ok=True)

    def _path(self, endpoint: Endpoint) -> Path:
        assert "files" in endpoint.options, "its endpoint has no folder of files: give a fixture `data` of your own"
        return Path(endpoint.options["files"]) / "jobs"


@pytest.fixture(scope="module")
def kind(form: str) -> str:
    return form.removeprefix("sharded ")


@pytest.fixture(scope="module")
def row(kind: str) -> KindOfTarget:
    return registry.kind_named(kind)


@pytest.fixture(scope="module")
def data() -> Data:
    return File()


@pytest.fixture(scope="module")
def components(form: str, kind: str) -> tuple[str, ...]:
    return registry.components(kind, SHARDS if form != kind else None)


@pytest.fixture(scope="module")
def make(form: str, row: KindOfTarget, components: tuple[str, ...]) -> Callable[[Lease], Target]:
    def made(lease: Lease) -> Target:
        resources = Resources().run_by(lease.runs_as)
        if form == row.kind:
            return row.make(lease, resources)
        return registry.make_shards(row.kind, lease=lease, resources=dict.fromkeys(components, resources))

    return made


@pytest.fixture(scope="module")
def create() -> Callable[[Target], None]:
    return lambda target: target.create()


def _created(make: Callable[[Lease], Target], create: Callable[[Target], None], lease: Lease) -> Iterator[Target]:
    target = make(lease)
    create(target)
    yield target
    target.destroy()


@pytest.fixture
def target(make: Callable[[Lease], Target], create: Callable[[Target], None], lease: Lease) -> Iterator[Target]:
    """Created, not started."""
    yield from _created(make, create, lease)


@pytest.fixture(scope="module")
def unstarted(make: Callable[[Lease], Target], create: Callable[[Target], None]) -> Iterator[Target]:
    """For all tests of a form that leave it so."""
    with leased("tests without a start") as lease:
        yield from _created(make, create, lease)


@pytest.fixture(scope="module")
def shared(make: Callable[[Lease], Target], create: Callable[[Target], None]) -> Iterator[Target]:
    """For all tests of a form that do with it what its users do; started by the first of them."""
    with leased("tests of a target") as lease:
        yield from _created(make, create, lease)


@pytest.fixture
def running(shared: Target, example: Example, data: Data) -> Target:
    """In its first state, with nothing stored, whatever the test before has done."""
    if shared.healthy():
        shared.apply(TargetState(example.start))
    else:
        shared.stop()
        shared.start(TargetState(example.start))
    data.forget(shared.endpoint())
    return shared


@pytest.fixture
def closed_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


def test_a_kind_registers_what_its_target_is(row: KindOfTarget, make: Callable[[Lease], Target], lease: Lease) -> None:
    """Studies are checked by the record, and carried out by the target: the two must say the same."""
    if row.before:
        with pytest.raises(StudyError, match="shards"):
            row.make(lease, Resources())
    target = make(lease)
    assert (target.kind, target.embedded) == (row.kind, row.embedded)
    assert isinstance(target, Cache) is row.cache
    assert row.catalogue.kind in (row.kind, row.ruled_as)
    assert row.ruled_as in ("", *registry.KINDS)
    assert target.pids() == ()


def test_a_driver_can_work_with_nothing_but_the_endpoint(running: Target, data: Data) -> None:
    endpoint = running.endpoint()
    assert endpoint.kind == running.kind
    data.store(endpoint)
    assert data.stored(endpoint)


def test_a_driver_gets_every_piece_in_order(running: Target, row: KindOfTarget, components: tuple[str, ...]) -> None:
    shards = running.endpoint().shards
    if row.one_system:
        assert shards == (), "they are reached through one address"
        return
    assert len(shards) == sum(name.startswith("shard") for name in components)
    assert len({shard.options["socket"] for shard in shards}) == len(shards)
    for shard, name in zip(shards, components[-len(shards) :] if shards else (), strict=True):
        assert f"/{name}/" in f"{shard.address}/"


def test_what_was_configured_is_effective(running: Target, row: KindOfTarget, example: Example) -> None:
    assert row.check_settings(example.start).items() <= running.effective().items()


@pytest.mark.parametrize("change", ["dynamic", "restart"])
def test_a_change_is_effective_the_data_stay_and_it_can_be_taken_back(
    running: Target, row: KindOfTarget, example: Example, data: Data, change: str
) -> None:
    before = running.effective()
    data.store(running.endpoint())
    wanted: State = getattr(example, change)
    running.apply(TargetState(wanted))
    assert row.check_settings(wanted).items() <= running.effective().items()
    running.apply(TargetState(example.start))
    assert running.effective() == before, "settings that are no longer asked for go back to their defaults"
    assert data.stored(running.endpoint())
    assert running.healthy()


def test_only_what_needs_a_restart_restarts(running: Target, row: KindOfTarget, example: Example) -> None:
    """Of what has data: what is in front of it holds nothing but connections, and may start again."""
    before = _first_pids(running, row)  # the others may be processes of connections, which come and go
    running.apply(TargetState(example.dynamic))
    assert _first_pids(running, row) == before
    running.apply(TargetState(example.restart))
    after = _first_pids(running, row)
    assert after.keys() == before.keys()
    assert all(after[name] != before[name] for name in before)


def test_every_counter_is_answered_and_known(running: Target) -> None:
    assert running.counters().keys() == {spec.name for spec in running.counter_specs}
    assert all(spec.metric in METRICS for spec in running.counter_specs)
    assert all(METRICS[spec.metric].unit in RATES for spec in running.counter_specs if spec.cumulative)
    running.reset()
    assert running.counters() or not running.counter_specs


def test_its_processes_are_known_and_none_of_a_server_is_root(
    running: Target, row: KindOfTarget, components: tuple[str, ...]
) -> None:
    """What is in front of shards is a program of Loadframe, and runs as its user does."""
    assert bool(running.pids()) is not running.embedded
    processes = running.processes()
    assert running.embedded or tuple(processes) == components
    assert running.embedded or all(processes.values())
    assert {pids[0] for pids in processes.values()} <= set(running.pids())
    for name in components:
        for pid in () if name in row.before else processes.get(name, ()):
            assert os.geteuid() != 0 or os.stat(f"/proc/{pid}").st_uid != 0  # noqa: PTH116


def test_it_stops_keeps_its_data_and_starts_again(running: Target, example: Example, data: Data) -> None:
    data.store(running.endpoint())
    running.stop()
    running.stop()
    assert not running.healthy()
    assert running.pids() == ()
    with pytest.raises(TargetError):
        running.counters()
    running.start(TargetState(example.start))
    assert data.stored(running.endpoint())


@pytest.mark.skipif(os.geteuid() != 0, reason="servers have users of their own where root starts them")
def test_nothing_is_done_by_a_path_that_the_servers_user_may_change(
    make: Callable[[Lease], Target], example: Example, lease: Lease, scratch: Path
) -> None:
    target = make(lease)
    with audited(scratch) as audit:
        target.create()
        target.check(TargetState(example.start))
        target.start(TargetState(example.start))
        target.counters()
        target.apply(TargetState(example.dynamic))
        target.apply(TargetState(example.restart))
        target.reset()
        target.log_tail()
        target.effective()
        target.stop()
        if isinstance(target, Cache):
            target.empty()
        target.start(TargetState(example.start))
        target.destroy()
    assert audit.looked_at > 10
    assert not audit.faults, "\n".join(dict.fromkeys(audit.faults))


def test_destroy_leaves_nothing_and_can_be_repeated(target: Target, example: Example, lease: Lease) -> None:
    target.start(TargetState(example.start))
    target.destroy()
    target.destroy()
    assert list(lease.folder.iterdir()) == []
    assert identity.naming(lease.folder.name) == ()
    assert not target.healthy()


def test_a_misspelt_setting_is_refused_and_the_right_one_named(unstarted: Target, example: Example) -> None:
    wrong, right = example.misspelt
    with pytest.raises(StudyError, match=wrong) as caught:
        unstarted.start(TargetState({wrong: 1}))
    assert right in caught.value.remedy
    assert unstarted.pids() == ()


def test_a_value_that_cannot_be_is_refused_and_what_can_be_named(unstarted: Target, example: Example) -> None:
    ((name, value),) = example.wrong.items()
    with pytest.raises(StudyError, match=f"{name} = {value!r}") as caught:
        unstarted.start(TargetState(example.wrong))
    assert "Give" in caught.value.remedy


def test_a_state_that_would_not_start_is_known_before_and_while_it_runs(
    target: Target, row: KindOfTarget, example: Example
) -> None:
    impossible = TargetState({**example.start, **(example.impossible or example.wrong)})
    refused = TargetError if example.impossible else StudyError

    def look() -> None:
        target.check(TargetState(example.restart))
        with pytest.raises(refused) as caught:
            target.check(impossible)
        assert any(name.removeprefix("shard_") in caught.value.fact for name in example.impossible or example.wrong)
        assert "Give" in caught.value.remedy
        assert bool(caught.value.details) is bool(example.impossible)

    look()
    assert target.pids() == ()
    target.start(TargetState(example.start))
    before, pids = target.effective(), _first_pids(target, row)
    look()
    assert target.effective() == before
    assert _first_pids(target, row) == pids
    assert target.healthy()


def test_a_refused_change_leaves_it_as_it_was(running: Target, example: Example) -> None:
    before = running.effective()
    with pytest.raises(StudyError):
        running.apply(TargetState(example.wrong))
    assert running.effective() == before


def test_it_says_what_it_is(running: Target, row: KindOfTarget) -> None:
    """As "Squid 5.7": the kind, or what stands before its hyphen; then the number."""
    name = running.version().split()[0].lower()
    assert name.startswith(running.kind) or running.kind.startswith(f"{name}-")
    assert running.version().split()[1][0].isdigit() or row.declared is not None, "a declared one has no version"
    assert {"data", "started"} <= running.describe().keys()
    endpoint = running.endpoint()
    secrets = [piece.options["password"] for piece in (endpoint, *endpoint.shards) if "password" in piece.options]
    assert not any(secret in " ".join(running.describe().values()) for secret in secrets)


def test_asking_before_the_start_is_a_clear_error(unstarted: Target) -> None:
    for ask in (unstarted.effective, unstarted.counters, unstarted.reset):
        with pytest.raises(TargetError):
            ask()
    assert not unstarted.healthy()


def test_what_is_known_of_it_names_what_there_is(row: KindOfTarget) -> None:
    """A setting, a limit or a cause that is misspelt in a row is never found, in silence."""
    limits, own = {rule.id for rule in RULES}, f"{row.kind}."
    ruled = [other for other in registry.KINDS.values() if row.kind in (other.kind, other.ruled_as)]
    for rule in (rule for rule in RULES if rule.id.startswith(own)):
        assert not rule.configured or any(other.setting(rule.configured) for other in ruled), f"{rule.id}: configured"
        assert set(rule.chain) <= limits, f"{rule.id}: chain"
    causes = limits | {signature.id for signature in SIGNATURES}
    assert {cause for cause in BUILDERS if cause.startswith(own)} <= causes, "remedies.py: BUILDERS"
    for spec in row.catalogue.specs:
        if spec.default is not None:
            assert row.check_settings({spec.name: spec.default}), spec.name


def test_the_requests_that_it_counts_are_held_against_those_of_the_driver(unstarted: Target) -> None:
    counted = {spec.metric for spec in unstarted.counter_specs}
    requests = [row for row in OF_SERVERS if row.witnesses == (("throughput",),) and counted.issuperset(row.counter)]
    assert unstarted.embedded or requests or not counted, "metrics.py: AGREEMENTS has no requests(...)"


def test_it_starts_whatever_the_umask(closed_umask: None, target: Target) -> None:
    """What is written for a server of another user is readable for it."""
    target.start(TargetState({}))
    assert target.endpoint()


def _first_pids(target: Target, row: KindOfTarget) -> dict[str, int]:
    """Of every piece that has data: the process that its others come from."""
    return {name: pids[0] for name, pids in target.processes().items() if pids and name not in row.before}
