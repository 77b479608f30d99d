"""Whether the stage that limits is right where it is known: python benchmarks/held_out_metadata.py [NAME ...]

Pipelines of file metadata into a database, each with one planted fault (VARIANTS). Measured only, nothing is tried: the
finding must come from what the stages print. The first three are the issue's, of which the rules were made; the code
had not seen the others before they were scored. Those on a slow tree need root, for FUSE. Ends with 1 where one is
wrong. A variant takes 15 to 40 seconds.
"""

from __future__ import annotations

import argparse
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pymysql

import foreign
import loadframe
from loadframe.errors import UserError
from loadframe.model import Investigation
from slow_tree import SlowTree, mounted

STUDY = """\
[study]
name = "{name}"
question = "Which stage limits?"
[target]
{target}
[workload]
kind = "metadata-index"
[workload.options]
{options}
[load]
axis = "{axis}"
levels = {levels}
[measure]
warmup = "500ms"
window = "{window}"
blocks = {{ min = 2, max = 2 }}
budget = "25s"
profile = "off"
{cage}
"""
DELAY_S = 0.005
HELD_S, LET_GO_S = 0.3, 0.05
BURST_S, BETWEEN_BURSTS_S = 0.4, 1.6
SQLITE = 'kind = "sqlite"\n[target.settings]\njournal_mode = "wal"\nsynchronous = "{}"'
ATTACHED = 'kind = "{}"\nattach = "{}"\noption_file = "{}"'
LOCK_ROWS = "SELECT count(*) FROM `{}`.entries FOR UPDATE"
LOCK_TABLE = "LOCK TABLES `{}`.entries WRITE"
ON_DISK = {
    "WRITE_BACK": SQLITE.format("NORMAL"),
    "FLUSHED": SQLITE.format("FULL"),
    "NEVER": SQLITE.format("OFF"),
    "JOURNAL": SQLITE.format("FULL").replace("wal", "delete"),
    "POSTGRES": 'kind = "postgres"\n[target.settings]\nsynchronous_commit = "on"',
}


# --- what is around a database ---


class Relay:
    """A socket whose requests reach another one delay_s later; answers come at once. turn: a request waits until the
    one before it is answered, whoever asked."""

    def __init__(self, place: Path, to: str, delay_s: float, turn: threading.Lock | None) -> None:
        self._to, self._delay_s, self._turn = to, delay_s, turn
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(str(place))
        place.chmod(0o777)  # the driver is another user
        self.listening.listen(64)

    def accept(self) -> None:
        """Until it is closed."""
        with suppress(OSError):
            while True:
                client, _ = self.listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._to)
                asked = threading.Event()
                for passing in (self._requests, self._answers):
                    threading.Thread(target=passing, args=(client, server, asked), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket, asked: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 16):
                if self._turn is not None and not asked.is_set():
                    self._turn.acquire()
                    asked.set()
                time.sleep(self._delay_s)
                server.sendall(data)
        self._ended(client, server)

    def _answers(self, client: socket.socket, server: socket.socket, asked: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                client.sendall(data)
                self._answered(asked)
        self._answered(asked)
        self._ended(client, server)

    def _answered(self, asked: threading.Event) -> None:
        if self._turn is not None and asked.is_set():
            asked.clear()
            self._turn.release()

    def _ended(self, *ends: socket.socket) -> None:
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextmanager
def relayed(
    folder: Path, delay_s: float = 0.0, turn: threading.Lock | None = None, kind: str = "mariadb"
) -> Iterator[str]:
    """A server behind a relay, as a table [target]."""
    with foreign.running(kind) as server:
        place = folder / Path(server.address).name
        relay = Relay(place, server.address, delay_s, turn)
        with relay.listening:
            threading.Thread(target=relay.accept, daemon=True).start()
            yield ATTACHED.format(kind, place, server.option_file)
            with suppress(OSError):
                relay.listening.shutdown(socket.SHUT_RDWR)


@contextmanager
def distant(folder: Path) -> Iterator[str]:
    """5 ms away."""
    with relayed(folder, delay_s=DELAY_S) as target:
        yield target


@contextmanager
def distant_postgres(folder: Path) -> Iterator[str]:
    """The same, a PostgreSQL."""
    with relayed(folder, delay_s=DELAY_S, kind="postgres") as target:
        yield target


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[str]:
    """As if there were one connection, which takes 1 ms a request."""
    with relayed(folder, 0.001, threading.Lock()) as target:
        yield target


@contextmanager
def with_a_stranger(folder: Path) -> Iterator[str]:
    """A session of another program has all rows locked, most of the time."""
    with _stranger(LOCK_ROWS, HELD_S, LET_GO_S) as target:
        yield target


@contextmanager
def with_bursts(folder: Path) -> Iterator[str]:
    """The same, a fifth of the time."""
    with _stranger(LOCK_ROWS, BURST_S, BETWEEN_BURSTS_S) as target:
        yield target


@contextmanager
def with_a_locked_table(folder: Path) -> Iterator[str]:
    """It has the whole table locked: what is asked waits, too."""
    with _stranger(LOCK_TABLE, HELD_S, LET_GO_S) as target:
        yield target


@contextmanager
def _stranger(locks: str, held_s: float, let_go_s: float) -> Iterator[str]:
    with foreign.running("mariadb") as server:
        ended = threading.Event()
        thread = threading.Thread(target=_lock, args=(server, ended, locks, held_s, let_go_s))
        thread.start()
        try:
            yield ATTACHED.format("mariadb", server.address, server.option_file)
        finally:
            ended.set()
            thread.join()


def _lock(server: foreign.Server, ended: threading.Event, locks: str, held_s: float, let_go_s: float) -> None:
    """The table comes and goes with the steps."""
    asking = pymysql.connect(unix_socket=server.address, read_default_file=str(server.option_file))
    with asking, asking.cursor() as cursor:
        while not ended.wait(let_go_s):
            cursor.execute("SELECT table_schema FROM information_schema.tables WHERE table_name = 'entries'")
            for (schema,) in cursor.fetchall():
                with suppress(pymysql.Error):
                    cursor.execute(locks.format(schema))
                    ended.wait(held_s)
                asking.rollback()
                cursor.execute("UNLOCK TABLES")


# --- the variants ---


@dataclass(frozen=True, slots=True)
class Variant:
    """right: the findings that are, the first one of a stage; first: of all. Without one, no stage may be named. on: of
    ON_DISK, or what a database is in. tree: to be scanned; one of ours without."""

    about: str
    right: tuple[str, ...]
    options: tuple[str, ...]
    on: str | Callable[[Path], AbstractContextManager[str]] = "WRITE_BACK"
    axis: str = "scan_threads"
    levels: tuple[int, ...] = (1, 2)
    cage: str = ""
    window: str = "1500ms"
    first: bool = False
    tree: SlowTree | None = None


OURS = {
    "batch": Variant("batches of one entry", ("pipeline.DB_APPLY",), ("entries = 20000", "batch = 1")),
    # Its disk is read by the stage that lists directories and by the one that looks entries up: which of them waits is
    # the file system's choice. ext4 reads the inodes of 500 entries at once, in 32 reads: a third of a second of it.
    "disk": Variant(
        "one scan thread, a disk of 100 reads a second", ("pipeline.SCAN", "pipeline.GET_INFO_FS"),
        ("entries = 60000", "cold = true"), on="NEVER", levels=(1,), cage="[cage]\nread_iops = 100", window="3s",
    ),
    "relay": Variant("a database 5 ms away", ("pipeline.DB_APPLY",), ("entries = 20000", "batch = 20"), on=distant),
}  # fmt: skip
UNSEEN = {
    "looks": Variant(
        "each look at a file takes 2 ms", ("pipeline.GET_INFO_FS",), ("batch = 200",),
        tree=SlowTree(200, 200, look_s=0.002),
    ),
    "listings": Variant(
        "each listing takes 50 ms", ("pipeline.SCAN",), ("batch = 200",), tree=SlowTree(2000, 20, list_s=0.05)
    ),
    "asking": Variant(
        "one thread asks a database 5 ms away, 16 write", ("pipeline.GET_INFO_DB",),
        ("entries = 20000", "batch = 20", "db_threads = 16"), on=distant,
    ),
    "queue": Variant(
        "queues of one batch, each transaction is flushed", ("pipeline.DB_APPLY",),
        ("entries = 20000", "batch = 10", "max_pending = 1"), on="FLUSHED",
    ),
    # Both stages ask the database: which of them waits longer is a matter of its statements.
    "connection": Variant(
        "two scanners, a database that takes one request at a time", ("pipeline.DB_APPLY", "pipeline.GET_INFO_DB"),
        ("entries = 20000", "batch = 20"), on=one_at_a_time, axis="scanners",
    ),
    "stranger": Variant(
        "another session has the rows locked", ("pipeline.DB_APPLY",), ("entries = 60000", "batch = 100"),
        on=with_a_stranger, window="3s",
    ),
    "cpu": Variant(
        "a quarter of a CPU", ("cage.cpu_quota",),
        ("entries = 60000",), cage="[cage]\ncpu_quota = 0.25", first=True,
    ),
    "changes": Variant(
        "few changes a second", (), ("entries = 5000",), axis="change_rate", levels=(100, 200), window="2s"
    ),
    "log": Variant(
        "more changes than a database 5 ms away takes", ("pipeline.DB_APPLY",), ("entries = 5000", "batch = 5"),
        on=distant, axis="change_rate", levels=(100, 2000), window="2s",
    ),
}  # fmt: skip
LATER = {
    "small": Variant(
        "a tree of 1,000 entries, scanned again and again, each transaction of ten is flushed", ("pipeline.DB_APPLY",),
        ("entries = 1000", "batch = 10"), on="FLUSHED",
    ),
    "writes": Variant(
        "a disk of 50 writes a second", ("pipeline.DB_APPLY",), ("entries = 20000", "batch = 100"), on="FLUSHED",
        cage="[cage]\nwrite_iops = 50", window="3s",
    ),
    "journal": Variant(
        "a rollback journal, batches of ten", ("pipeline.DB_APPLY",), ("entries = 20000", "batch = 10"), on="JOURNAL",
    ),
    "postgres": Variant(
        "PostgreSQL, batches of one entry", ("pipeline.DB_APPLY",), ("entries = 20000", "batch = 1"), on="POSTGRES",
    ),
    "threads": Variant(
        "one thread lists a directory in 20 ms, 16 look its files up", ("pipeline.SCAN",),
        ("batch = 100", "fs_threads = 16"), levels=(1,), tree=SlowTree(2000, 20, look_s=0.0002, list_s=0.02),
    ),
}  # fmt: skip
LATEST = {
    "starved": Variant(
        "two scanners of which one has nothing to do: all files are in one directory", ("pipeline.DB_APPLY",),
        ("entries = 30000", "files_per_directory = 30000", "depth = 1", "batch = 50"), on=distant, axis="scanners",
    ),
    "bursts": Variant(
        "few changes a second, and another session has the rows locked now and then", (), ("entries = 5000",),
        on=with_bursts, axis="change_rate", levels=(100, 200), window="2s",
    ),
    "away": Variant(
        "a PostgreSQL 5 ms away", ("pipeline.DB_APPLY",), ("entries = 20000", "batch = 20"), on=distant_postgres
    ),
    "pages": Variant(
        "one directory has all files, and each page of its listing takes 50 ms", ("pipeline.SCAN",),
        ("batch = 100", "fs_threads = 4"), tree=SlowTree(1, 40_000, page_s=0.05),
    ),
    "wide": Variant(
        "three directories have all files, and each look at one takes 1 ms", ("pipeline.GET_INFO_FS",), ("batch = 50",),
        tree=SlowTree(3, 20_000, look_s=0.001), axis="scanners", levels=(1, 2, 4),
    ),
    # Both stages ask the database: which of them waits longer is a matter of its statements.
    "table": Variant(
        "another session has the table locked", ("pipeline.DB_APPLY", "pipeline.GET_INFO_DB"),
        ("entries = 60000", "batch = 100"), on=with_a_locked_table, window="3s",
    ),
    "tiny": Variant(
        "four threads in every stage, queues of one batch, each transaction of ten is flushed", ("pipeline.DB_APPLY",),
        ("entries = 20000", "batch = 10", "max_pending = 1", "info_threads = 4", "fs_threads = 4", "db_threads = 4"),
        on="FLUSHED", levels=(1, 4),
    ),
}  # fmt: skip
VARIANTS = {**OURS, **UNSEEN, **LATER, **LATEST}


@contextmanager
def target_of(variant: Variant, folder: Path) -> Iterator[str]:
    """The table [target] of its study."""
    if isinstance(variant.on, str):
        yield ON_DISK[variant.on]
    else:
        with variant.on(folder) as target:
            yield target


@contextmanager
def tree_of(variant: Variant, folder: Path) -> Iterator[tuple[str, ...]]:
    """The options that name its tree."""
    if variant.tree is None:
        yield ()
    else:
        (folder / "tree").mkdir()
        with mounted(variant.tree, folder / "tree"):
            yield (f'tree = "{folder / "tree"}"',)


def measured(name: str, variant: Variant) -> Investigation:
    """What a measured sweep alone says of it, on a server of its own."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        folder = Path(place)
        folder.chmod(0o755)
        with target_of(variant, folder) as target, tree_of(variant, folder) as more:
            path = folder / f"{name}.toml"
            text = STUDY.format(
                name=name, target=target, options="\n".join((*variant.options, *more)), axis=variant.axis,
                levels=list(variant.levels), cage=variant.cage, window=variant.window,
            )  # fmt: skip
            path.write_text(text)
            run = loadframe.measure(loadframe.load_study(path), folder / "runs").run
            return loadframe.conclude(loadframe.open_run(run)).answer


def is_right(variant: Variant, said: list[str]) -> bool:
    """By the first finding that is of a stage, or of all; where nothing limits no log may fall behind, either."""
    if not variant.right:
        return not any(one.startswith(("pipeline.", "changelog.")) for one in said)
    judged = said if variant.first else [one for one in said if one.startswith("pipeline.")]
    return bool(judged) and judged[0] in variant.right


def main() -> int:
    """Print a row for each; 1 where one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(VARIANTS), metavar="NAME", help=", ".join(VARIANTS))
    wrong = 0
    for name in parser.parse_args().names:
        variant, began = VARIANTS[name], time.monotonic()
        try:
            said = [one.id for one in measured(name, variant).rounds[0].findings]
            right = is_right(variant, said)
        except UserError as error:
            said, right = [f"failed: {error}"], False
        wrong += not right
        words = ", ".join(said) or "nothing"
        print(
            f"{'right' if right else 'WRONG'}  {variant.about}: {words} ({time.monotonic() - began:.0f} s)", flush=True
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
