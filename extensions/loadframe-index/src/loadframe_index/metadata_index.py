"""metadata-index: a pipeline, the driver, scans a tree of files into a database and keeps it current. A request is one
entry, from discovery to acknowledgement; after each step every acknowledged entry must be in the database."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from loadframe.errors import CageError, StudyError, TargetError, WorkloadError
from loadframe.host.environment import importing
from loadframe.host.privilege import make_private, of_uid, rights_of
from loadframe.host.state import scratch_directory
from loadframe.model import AnswersCompared, Endpoint, Knob, Requirement, SettingValue
from loadframe.system.files import Folder, Whose
from loadframe.workloads import databases, step_files
from loadframe.workloads.base import KindOfWorkload
from loadframe.workloads.common import AtRate, Common
from loadframe.workloads.driving import ProcessDriver, start_together
from loadframe.workloads.forking import Worker
from loadframe.workloads.options import choice, number, rules, switch, text, whole
from loadframe.workloads.request_log import RECORD
from loadframe_index import metadata_cold, seeded, verifying
from loadframe_index import store as stores
from loadframe_index.beneath import shown
from loadframe_index.config import BOARD, Config
from loadframe_index.keeping import INJECTED, Keeping, permitted
from loadframe_index.seeded import Shape
from loadframe_index.store import INDEXES, Store, StoreError

MOST_FILES = 1_000
MOST_PROCESSES, MOST_THREADS = 64, 256
MOST_ENTRIES = 10_000_000


@dataclass(frozen=True)
class MetadataIndexOptions:
    tree: str = text("", "a folder to scan, which is only read; without one a tree is made")
    entries: int = whole(100_000, 1, MOST_ENTRIES, "entries of the tree that is made")
    files_per_directory: int = whole(30, 1, MOST_ENTRIES, "files in each directory of the tree that is made")
    depth: int = whole(5, 1, seeded.MOST_DEPTH, "how deep its directories are; 1: all are in its root")
    median_bytes: int = whole(
        16_384, 0, 1 << 40, "median of its files' sizes, which are log-normal; they have no content"
    )
    sigma: float = number(2.0, 0.0, 5.0, "standard deviation of the natural logarithm of their sizes")
    owners: int = whole(10, 0, 10_000, "how many users own its files, where root makes it")
    age_days: int = whole(730, 0, 36_500, "over how many days their times are spread")
    seed: int = whole(0, 0, 2**31 - 1, "of names, sizes, owners and times")
    start: str = choice("empty", ("empty", "indexed"), "what the database has when a step begins: nothing, or the tree")
    cold: bool = switch(False, "the kernel has nothing of the tree in memory when a step begins (needs root)")
    scanners: int = whole(1, 1, MOST_PROCESSES, "processes, each with all stages")
    scan_threads: int = whole(1, 1, MOST_THREADS, "threads of a process that list directories")
    fs_threads: int = whole(1, 1, MOST_THREADS, "threads of a process that look entries up; never below scan_threads")
    info_threads: int = whole(1, 1, MOST_THREADS, "threads of a process that ask the database what it knows")
    db_threads: int = whole(1, 1, MOST_THREADS, "threads of a process that write to the database")
    batch: int = whole(1000, 1, 100_000, "entries of a batch, each of which is one query and one transaction")
    max_pending: int = whole(10_000, 1, 10_000_000, "entries that may wait before each stage of a process")
    indexes: str = choice(
        "parent",
        tuple(INDEXES),
        "none, parent (directories have an index), du (and totals of each directory), or all (and an index of size, "
        "age, owner and name)",
    )
    rewrite: bool = switch(False, "write entries again that are unchanged, in place of noting that they were seen")


KNOBS = (
    *(
        Knob(option, low=1, high=most, raises=f"pipeline.{stage}", layer="application")
        for stage, option, most in (
            ("SCAN", "scan_threads", MOST_THREADS),
            ("GET_INFO_DB", "batch", 100_000),
            ("GET_INFO_DB", "info_threads", MOST_THREADS),
            ("GET_INFO_FS", "fs_threads", MOST_THREADS),
            ("DB_APPLY", "batch", 100_000),
            ("DB_APPLY", "db_threads", MOST_THREADS),
        )
    ),
    Knob(
        "indexes",
        ("all", "du", "parent"),
        raises="pipeline.DB_APPLY",
        layer="application",
        price="answers that had an index or totals of their own read the whole table",
    ),
)
"""What gives each stage more. Larger batches come first: a query and a transaction have a price of their own. Fewer
indexes come last: whoever asks the database pays for them."""


@dataclass
class _Prepared:
    """Shared by all workloads made of one another with other options. indexed: the tree that the database has, and with
    which indexes; "" for none. cold: what a cold start took, in words. compared: answers of the database, by their
    tree."""

    trees: dict[Shape, Path] = field(default_factory=dict)
    indexed: tuple[str, str] = ("", "")
    cold: str = ""
    compared: dict[str, AnswersCompared] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Ran:
    """entries: of the tree, if we made it."""

    config: Config
    load: float
    entries: int | None


class MetadataIndex(Common[MetadataIndexOptions]):
    kind = "metadata-index"
    target_kinds = frozenset({"sqlite", "mariadb", "postgres"})
    axes = frozenset({"scan_threads"})
    axis_unit = "threads"
    work_unit = "entries"
    operations: tuple[str, ...] = ("scan",)
    model = MetadataIndexOptions
    levels = (1, MOST_THREADS)

    def set_up(self) -> None:
        self._prepared = _Prepared()
        self._ran: _Ran | None = None
        self._begins_indexed = self.options.start == "indexed"

    def with_options(self, options: Mapping[str, SettingValue]) -> "MetadataIndex":
        other = type(self)({**asdict(self.options), **options}, self._allowance)
        other._prepared = self._prepared
        return other

    def trials(self) -> Sequence[Sequence[str]]:
        return (importing("loadframe_index.pipeline"),)

    def install(self, endpoint: Endpoint) -> None:
        self._check_tree()
        if endpoint.kind in databases.KINDS:
            databases.make_schema(endpoint)
        self._make_tables(endpoint)

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        """Empty tables; if steps begin indexed, they are filled in `start`, once the tree is known."""
        asked = self.words_of(self.check_level(level))
        if endpoint.kind in databases.KINDS:
            databases.await_drivers_gone(endpoint, asked)
        tree, indexes = self._prepared.indexed
        if not self._begins_indexed or not tree or indexes != self.options.indexes:
            self._make_tables(endpoint)

    def start(self, endpoint: Endpoint, level: float, folder: Path, duration_s: float) -> ProcessDriver:
        folder = folder.resolve()
        (axis,) = self.axes
        changed: dict[str, Any] = {axis: self.check_level(level)}
        seconds = 0.0 if self.runs_to_completion else float(duration_s)
        config = self._begun(endpoint, replace(self.options, **changed), level, folder, seconds)
        return self._start(endpoint, config, None if self.runs_to_completion else duration_s)

    def _begun(
        self, endpoint: Endpoint, options: MetadataIndexOptions, level: float, folder: Path, seconds: float
    ) -> Config:
        """Make the tree, and have it in the database if steps begin so. What the pipeline of this step does."""
        tree, entries = self._tree(options, folder.parent)
        names = ("scanners", "scan_threads", "info_threads", "db_threads", "batch", "rewrite")
        config = Config(
            tree=tree,
            folder=str(folder),
            database=database_of(endpoint),
            fs_threads=max(options.fs_threads, options.scan_threads),
            queue=options.max_pending,
            seconds=seconds,
            **{name: getattr(options, name) for name in names},
        )
        if self._begins_indexed and self._prepared.indexed != (tree, options.indexes):
            self._index(endpoint, replace(config, seconds=0.0), folder)
            self._prepared.indexed = (tree, options.indexes)
        self._ran = _Ran(config, level, entries)
        return config

    def _start(self, endpoint: Endpoint, config: Config, duration_s: float | None) -> ProcessDriver:
        with step_files.create(config.path(BOARD), self.allowance.user) as board:
            board.truncate(config.shape.bytes)
        printed = [config.path(f"process-{number}.txt") for number in range(config.scanners)]
        return self._run("loadframe_index.pipeline", config, printed, endpoint, duration_s)

    def _run(
        self,
        module: str,
        config: Config | Keeping,
        printed: Sequence[Path],
        endpoint: Endpoint,
        duration_s: float | None,
    ) -> ProcessDriver:
        """printed: files for what the processes print. The configuration may have a password, so it is handed over in
        memory. With cold = true the kernel then forgets the tree, apart from a database that is a file."""

        def forget() -> None:
            if self.options.cold:
                self._prepared.cold = metadata_cold.forget(Path(config.tree), config.database.get("path"))

        environment = None if endpoint.kind == "sqlite" else databases.engine_of(endpoint).environment(endpoint)
        with step_files.in_memory(config.text().encode()) as file:
            workers = [
                Worker(module, [f"/dev/fd/{file}", str(number)], config.requests(number), output, environment, (file,))
                for number, output in enumerate(printed)
            ]
            return start_together(self.kind, workers, self.allowance, duration_s, once_ready=forget)

    def _ended(self, endpoint: Endpoint) -> _Ran | None:
        if endpoint.kind in databases.KINDS:
            databases.await_drivers_gone(endpoint, "to tidy up after a step")
        ran, self._ran = self._ran, None
        return ran

    def after_step(self, endpoint: Endpoint) -> None:
        """WorkloadError if an entry is lost."""
        if (ran := self._ended(endpoint)) is None:
            return
        with _connected(endpoint) as store:
            if self.runs_to_completion and ran.entries is None:
                verifying.check_size(store, ran.config, ran.load)
            wrong = verifying.lacking(store, ran.config, ran.entries) or self._other_answers(store, ran)
        if wrong:
            raise WorkloadError(
                f"The database does not have what the pipeline acknowledged: {wrong}.",
                remedy="The pipeline or the database lost entries; its log may say why.",
            )

    def notes(self) -> tuple[str, ...]:
        return (self._prepared.cold,) * bool(self._prepared.cold)

    def answers(self) -> tuple[AnswersCompared, ...]:
        return tuple(self._prepared.compared.values())

    def _other_answers(self, store: Store, ran: _Ran) -> str:
        """After the first whole scan of a tree: where the database differs from du and find, in words. In a user's
        tree, which may change meanwhile, a difference is no error."""
        tree, known = ran.config.tree, self._prepared.compared
        if not self.runs_to_completion or tree in known or not verifying.whole_scans(ran.config):
            return ""
        of = "the tree" if ran.entries is None else f"the tree of {ran.entries:,} entries"
        known[tree] = verifying.compared(store, Path(tree), of, ran.load)
        return "" if ran.entries is None else "; ".join(verifying.differing(known[tree]))

    def remove(self, endpoint: Endpoint) -> None:
        if endpoint.kind in databases.KINDS:
            databases.drop_schema(endpoint)
        else:
            with _connected(endpoint) as store:
                store.drop()

    def _check_tree(self) -> None:
        tree = self.options.tree
        if tree and not (Path(tree).is_absolute() and Path(tree).is_dir()):
            raise StudyError(
                f"workload.options.tree = {tree!r} is no folder with an absolute path.",
                remedy="Name a folder that is there, from / on; or omit it, and a tree is made.",
            )
        if tree and Path(tree).is_symlink():
            raise StudyError(
                f"workload.options.tree = {tree!r} is a symbolic link, which neither find nor du follows.",
                remedy=f"Name the folder that it leads to: {shown(os.fsencode(Path(tree).resolve()))}.",
            )

    def _tree(self, options: MetadataIndexOptions, folder: Path) -> tuple[str, int | None]:
        """entries: if we made it. It is removed with the folder."""
        if options.tree:
            return options.tree, None
        names = ("entries", "files_per_directory", "depth", "median_bytes", "sigma", "owners", "age_days", "seed")
        shape = Shape(**{name: getattr(options, name) for name in names})
        made = self._prepared.trees
        if shape not in made:
            if not (place := folder / "trees").exists():
                make_private(place, self.allowance.user)
                seeded.spread(place)
            made[shape] = seeded.apart(place)
        seeded.make(made[shape], shape)
        return str(made[shape]), options.entries

    def _index(self, endpoint: Endpoint, config: Config, folder: Path) -> None:
        driver = self._start(endpoint, config, None)
        try:
            while not driver.wait(1.0):
                pass
            driver.requests()
        finally:
            driver.kill()
        written = Folder(folder, Whose.ANOTHERS)
        for name in written.names(MOST_FILES):  # the step's own files begin empty
            written.remove(name)

    def _make_tables(self, endpoint: Endpoint) -> None:
        self._prepared.indexed = ("", "")
        with _connected(endpoint) as store:
            store.create(self.options.indexes)


class MetadataIndexByScanners(MetadataIndex):
    axes = frozenset({"scanners"})
    axis_unit = "processes"
    levels = (1, MOST_PROCESSES)


class MetadataIndexByBatch(MetadataIndex):
    axes = frozenset({"batch"})
    axis_unit = "entries per batch"
    levels = (1, 100_000)


class MetadataIndexByEntries(MetadataIndex):
    """A step ends when the whole tree is in the database."""

    axes = frozenset({"entries"})
    axis_unit = "entries"
    levels = (1, MOST_ENTRIES)
    runs_to_completion = True


class MetadataIndexByChangeRate(AtRate, MetadataIndex):
    """The tree stays as it is: records are injected, looked up and written like those of a change log."""

    axes = frozenset({"change_rate"})
    axis_unit = "changes/s"
    work_unit = "changes"
    operations = ("change",)
    levels = (1, 1_000_000)

    def set_up(self) -> None:
        super().set_up()
        self._begins_indexed, self._acknowledged = True, 0

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        super().set_level(endpoint, level)
        with _connected(endpoint) as store:
            self._acknowledged = store.acknowledged(INJECTED)

    def clients(self, level: int) -> int:
        return 1

    def start(self, endpoint: Endpoint, level: float, folder: Path, duration_s: float) -> ProcessDriver:
        folder, rate = folder.resolve(), self.check_level(level)
        config = self._begun(endpoint, self.options, level, folder, 0.0)
        keeping = Keeping(
            tree=config.tree,
            folder=config.folder,
            database=config.database,
            log=INJECTED,
            change_rate=rate,
            batch=self.options.batch,
            seconds=float(duration_s),
            seed=self.options.seed,
            scan=False,
        )
        driver = self._run("loadframe_index.keeping", keeping, [keeping.path("keeping.txt")], endpoint, duration_s)
        assert driver.end_s is not None
        begun = np.arange(1, int(rate * duration_s) + 1) / rate
        driver.arrivals = driver.end_s - duration_s + begun
        return driver

    def after_step(self, endpoint: Endpoint) -> None:
        if (ran := self._ended(endpoint)) is None:
            return
        sent = step_files.size(ran.config.requests(0)) // RECORD.size
        with _connected(endpoint) as store:
            acknowledged, there = store.acknowledged(INJECTED) - self._acknowledged, store.count()
        if acknowledged < sent or (ran.entries is not None and there != ran.entries):
            raise WorkloadError(
                f"The database does not have what was acknowledged: {acknowledged:,} of {sent:,} changes, and {there:,}"
                f" of {ran.entries or there:,} entries.",
                remedy="The change log or the database lost them; its log may say why.",
            )


def database_of(endpoint: Endpoint) -> dict[str, str]:
    """As loadframe_index.store.connect takes it."""
    if endpoint.kind == "sqlite":
        return {"kind": "sqlite", "path": endpoint.address, "pragmas": endpoint.options.get("pragmas", "{}")}
    engine = databases.engine_of(endpoint)
    proof = {"proof": databases.proof(endpoint)} if endpoint.attached else {}
    if endpoint.kind == "mariadb":
        given = dict(engine.parameters(endpoint))
        return {"kind": "mariadb", "schema": given.pop("db"), **given, **proof}
    known = {"application_name": engine.APPLICATION, "schema": engine.schema_of(endpoint), **proof}
    return {"kind": "postgres", **engine.all_parameters(endpoint), **known}


def requirements(kind: str) -> tuple[Requirement, ...]:
    """Python's own SQLite, new enough for upserts (3.24); the package for a server is its kind's."""
    import sqlite3

    version = sqlite3.sqlite_version if sqlite3.sqlite_version_info >= (3, 24) else None
    return (Requirement(kind, "SQLite 3.24 or newer", version, "use a Python linked with a newer SQLite"),)


def change_logs() -> list[Requirement]:
    """Tried in the place of temporary data: a change log depends on the file system."""
    try:
        return permitted(scratch_directory())
    except CageError as error:
        return [Requirement("index", "change log", None, f"{error.fact}. {error.remedy}")]


@contextmanager
def _connected(endpoint: Endpoint) -> Iterator[Store]:
    """SQLite with the rights of the driver's user, who owns the folder. TargetError."""
    try:
        with ExitStack() as stack:
            if endpoint.kind == "sqlite":
                stack.enter_context(rights_of(of_uid(Path(endpoint.address).parent.stat().st_uid)))
            store = stores.connect(database_of(endpoint))
            stack.callback(store.close)
            yield store
    except StoreError as error:
        raise TargetError(
            f"The database at {endpoint.address} refused: {error}.",
            remedy="Check that it runs and can be written to, and that its disk has space left.",
        ) from error


KIND = KindOfWorkload(
    MetadataIndex.kind,
    MetadataIndex,
    rules(MetadataIndexOptions),
    requirements,
    other_axes={
        "scanners": MetadataIndexByScanners,
        "batch": MetadataIndexByBatch,
        "entries": MetadataIndexByEntries,
        "change_rate": MetadataIndexByChangeRate,
    },
    knobs=KNOBS,
    examined=change_logs,
)
