"""Several private PostgreSQLs side by side, as shards."""

from collections.abc import Mapping, Sequence

from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.kinds.base import shard_name
from loadframe.kinds.postgres.target import PostgresTarget
from loadframe.kinds.private_server import do_all
from loadframe.model import Endpoint, SettingValue, TargetState


class PostgresShards:
    """See kinds.base.Target. All shards have the same state. Its counters are the sums over the shards, but for
    OF_THE_MOST the largest. Its endpoint names the first shard; `shards` has all of them, in order."""

    kind = "postgres"
    embedded = False
    counter_specs = PostgresTarget.counter_specs

    def __init__(self, *, lease: Lease, resources: Sequence[Resources]) -> None:
        self._shards = {
            shard_name(number): PostgresTarget(lease=lease, resources=shard_resources, folder=shard_name(number))
            for number, shard_resources in enumerate(resources, 1)
        }

    def create(self) -> None:
        """The first one's empty data are copied to the others: initdb takes a second, a copy a tenth."""
        first, *others = self._shards.values()
        first.create()
        for shard in others:
            shard.create_like(first)

    def check(self, state: TargetState) -> None:
        self._first.check(state)

    def start(self, state: TargetState) -> None:
        for shard in self._shards.values():
            shard.start(state)

    def apply(self, state: TargetState) -> None:
        for shard in self._shards.values():
            shard.apply(state)

    def reset(self) -> None:
        for shard in self._shards.values():
            shard.reset()

    def stop(self) -> None:
        do_all(shard.stop for shard in self._shards.values())

    def destroy(self) -> None:
        for shard in self._shards.values():
            shard.destroy()

    def effective(self) -> dict[str, SettingValue]:
        """The first shard's: all have the same settings, and share one machine."""
        return self._first.effective()

    def counters(self) -> dict[str, float]:
        of_shards = [shard.counters() for shard in self._shards.values()]
        return {
            name: (max if name in OF_THE_MOST else sum)(counters[name] for counters in of_shards)
            for name in of_shards[0]
        }

    def pids(self) -> tuple[int, ...]:
        return tuple(pid for pids in self.processes().values() for pid in pids)

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        return {name: shard.pids() for name, shard in self._shards.items()}

    def endpoint(self) -> Endpoint:
        first, *others = (shard.endpoint() for shard in self._shards.values())
        return Endpoint(first.kind, first.address, first.options, shards=(first, *others))

    def healthy(self) -> bool:
        return all(shard.healthy() for shard in self._shards.values())

    def version(self) -> str:
        return self._first.version()

    def log_tail(self, lines: int = 20) -> str:
        tails = {name: shard.log_tail(lines) for name, shard in self._shards.items()}
        return "\n".join(f"{name}:\n{tail}" for name, tail in tails.items() if tail)

    def describe(self) -> Mapping[str, str]:
        return {**self._first.describe(), "shards": str(len(self._shards))}

    @property
    def _first(self) -> PostgresTarget:
        return next(iter(self._shards.values()))


OF_THE_MOST = frozenset(
    {"max_connections", "connections_allowed", "connections", "autovacuum_workers", "autovacuum_max_workers",
     "worker_processes", "max_worker_processes", "locks", "lock_slots", "wal_since_checkpoint",
     "checkpoint_distance", "transaction_age", "transaction_age_limit"}
)  # fmt: skip
"""Uses and their ceilings: each shard has its own, and the fullest one counts."""
