"""What other distributions register: objects of entry points, loaded on demand
(https://packaging.python.org/en/latest/specifications/entry-points/). One that cannot be used affects nothing else: a
study that names it gets an error with its distribution, what is wrong and what to do; `loadframe doctor` lists it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import Distribution, EntryPoint, distributions
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from loadframe.errors import MissingTool, OutsideFault, StudyError
from loadframe.formats.said import words

if TYPE_CHECKING:  # each command begins with this module, and needs no record
    from loadframe.model import Requirement

KINDS_GROUP, WORKLOADS_GROUP = "loadframe.kinds", "loadframe.workloads"
VERBS_GROUP, EXECUTORS_GROUP = "loadframe.verbs", "loadframe.executors"
VIEWS_GROUP, PAGES_GROUP = "loadframe.views", "loadframe.pages"
EXPORTS_GROUP, DATA_GROUP = "loadframe.exports", "loadframe.data"
ANSWERS_GROUP, READERS_GROUP = "loadframe.answers", "loadframe.readers"
FAMILIES_GROUP = "loadframe.families"
WHAT = {
    KINDS_GROUP: "kind",
    WORKLOADS_GROUP: "workload",
    VERBS_GROUP: "verb",
    EXECUTORS_GROUP: "executor",
    VIEWS_GROUP: "view",
    PAGES_GROUP: "page",
    EXPORTS_GROUP: "export",
    DATA_GROUP: "reader of data",
    ANSWERS_GROUP: "kind of answer",
    READERS_GROUP: "reader",
    FAMILIES_GROUP: "family of metrics",
}
EXTENSIONS: Mapping[str, Mapping[str, str]] = {
    KINDS_GROUP: {
        "bulk-loader": "loadframe-bulk",
        "ndb": "loadframe-ndb",
        "ndb-sql": "loadframe-ndb",
        **dict.fromkeys(("nginx", "nginx-cache", "squid", "varnish"), "loadframe-caches"),
    },
    WORKLOADS_GROUP: {
        **dict.fromkeys(
            ("access-log", "har", "jmeter", "k6", "locust", "pgbench", "redis", "sysbench"), "loadframe-drivers"
        ),
        "bulk-ingest": "loadframe-bulk",
        "metadata-index": "loadframe-index",
    },
    VERBS_GROUP: {
        **{name: f"loadframe-{name}" for name in ("fleet", "ndb", "tune", "watch")},
        **dict.fromkeys(("export", "serve"), "loadframe-live"),
        "growth": "loadframe-watch",
    },
    EXECUTORS_GROUP: {"fleet": "loadframe-fleet"},
    READERS_GROUP: {"fleet": "loadframe-fleet"},
    VIEWS_GROUP: {"terminal": "loadframe-live"},
    DATA_GROUP: {"production": "loadframe-watch"},
    ANSWERS_GROUP: {"tuning": "loadframe-tune"},
    FAMILIES_GROUP: dict.fromkeys(("changelog", "pipeline"), "loadframe-pipelines"),
}
NEEDED_BY = {"loadframe-bulk": "loadframe-pipelines", "loadframe-index": "loadframe-pipelines"}


def not_installed(group: str, name: str, what: str) -> MissingTool:
    """The error for one of EXTENSIONS. what: needs it, as a study or a command says it."""
    extension = EXTENSIONS[group][name]
    places = " ".join(f"./extensions/{place}" for place in (NEEDED_BY.get(extension), extension) if place)
    return MissingTool(
        f"{what} needs the extension {extension}, which is not installed",
        remedy=f"In a checkout: `make install`, or `pip install {places}`.",
    )


class Named(Protocol):
    @property
    def kind(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Broken:
    """distribution: name and version."""

    kind: str
    distribution: str
    fact: str
    remedy: str

    def error(self, key: str) -> StudyError:
        """For a study that names it under this key."""
        return StudyError(f"{key} = {self.kind!r} is from {self.distribution}: {self.fact}", remedy=self.remedy)

    def requirement(self) -> "Requirement":
        from loadframe.model import Requirement

        return Requirement(self.kind, f"entry point of {self.distribution}", None, f"{self.fact}. {self.remedy}")


@dataclass(frozen=True, slots=True)
class Offer:
    """point: None where the distribution's entry points cannot be read."""

    distribution: str
    point: EntryPoint | None
    fact: str = ""

    @property
    def name(self) -> str:
        return "" if self.point is None else self.point.name

    @property
    def module(self) -> str:
        return "" if self.point is None else self.point.value.partition(":")[0].strip()

    @property
    def package(self) -> str:
        """Its module's package; "" for a top-level module."""
        return self.module.rpartition(".")[0]


AUTHOR = "Its author must mend that; until then, uninstall it."


@dataclass(frozen=True, slots=True)
class Flaw:
    fact: str
    remedy: str = AUTHOR


Record = TypeVar("Record", bound=Named)


class Registry(Mapping[str, Record], Generic[Record]):
    """Records by their kind: Loadframe's own first, found without looking at other distributions, then those of others,
    by name. A look-up loads only the record that it names; iterating loads all of them, and leaves out those that
    cannot be used (`broken`)."""

    def __init__(
        self,
        group: str,
        record: type[Record],
        own: Callable[[], Iterable[Record]],
        check: Callable[[Record], Flaw | None] = lambda _: None,
    ) -> None:
        """record: required type of the objects. own: those of this package, in order. check: the flaw of another
        distribution's record, if any."""
        self.group = group
        self._record = record
        self._make_own = own
        self._check = check
        self._loaded: dict[str, Record | Broken] = {}

    def __getitem__(self, kind: str) -> Record:
        if kind in self.own:
            return self.own[kind]
        record = self._load(kind)
        if record is None or isinstance(record, Broken):
            raise KeyError(kind)
        return record

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from (kind for kind in self._names if not isinstance(self._load(kind), Broken))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @cached_property
    def own(self) -> Mapping[str, Record]:
        return {record.kind: record for record in self._make_own()}

    def why_not(self, kind: str) -> Broken | None:
        """None where no distribution offers it."""
        record = None if kind in self.own else self._load(kind)
        return record if isinstance(record, Broken) else None

    def refuse(self, kind: str, key: str) -> None:
        """StudyError for one that is unusable, or of an extension that is not installed. key: names it in a study."""
        if (broken := self.why_not(kind)) is not None:
            raise broken.error(key)
        if kind in EXTENSIONS[self.group]:
            missing = not_installed(self.group, kind, f"{key} = {kind!r}")
            raise StudyError(missing.fact, remedy=missing.remedy)

    def distribution(self, kind: str) -> str:
        """The distribution of a kind; "" for one of our own, and where none offers it."""
        offered = (offer.distribution for offer in self._offers if offer.name == kind)
        return "" if kind in self.own else next(offered, "")

    def broken(self) -> tuple[Broken, ...]:
        loaded = (self._load(kind) for kind in self._names)
        return (*self._unusable, *(record for record in loaded if isinstance(record, Broken)))

    def needs(self, kind: str, ask: Callable[[Record], Iterable["Requirement"]]) -> list["Requirement"]:
        """A foreign one that fails when asked is missing itself. KeyError."""
        if kind in self.own:
            return list(ask(self.own[kind]))
        try:
            return list(ask(self[kind]))
        except Exception as error:  # foreign code must end no command of ours
            if kind not in self:
                raise
            fact = f"it does not say what it needs: {shown(error)}"
            return [Broken(kind, self.distribution(kind), fact, AUTHOR).requirement()]

    @property
    def _names(self) -> list[str]:
        return sorted({offer.name for offer in self._offers if offer.name} - self.own.keys())

    @property
    def _unusable(self) -> Iterator[Broken]:
        """What is not even tried: unreadable entry points, and names of our own."""
        for offer in self._offers:
            if offer.point is None:
                yield Broken(self.group, offer.distribution, offer.fact, _repair(offer.distribution))
            elif offer.name in self.own:
                fact = f"Loadframe has a {offer.name} of its own, which is used"
                yield Broken(offer.name, offer.distribution, fact, "Its author must give it another name.")

    @cached_property
    def _offers(self) -> tuple[Offer, ...]:
        return offers(self.group)

    def _load(self, kind: str) -> Record | Broken | None:
        if kind not in self._loaded:
            offers = [offer for offer in self._offers if offer.name == kind]
            if not offers:
                return None
            self._loaded[kind] = self._tried(kind, offers)
        return self._loaded[kind]

    def _tried(self, kind: str, offers: list[Offer]) -> Record | Broken:
        (first, *others), whose = offers, " and ".join(offer.distribution for offer in offers)
        if others:
            return Broken(kind, whose, "both offer it", "Uninstall all of them but one.")
        assert first.point is not None, "only what could be read is offered"
        try:
            record = first.point.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code must end no command of ours
            remedy = _repair(whose) if isinstance(error, ImportError | AttributeError) else AUTHOR
            return Broken(kind, whose, f"its entry point does not load: {shown(error)}", remedy)
        place = first.point.value
        if not isinstance(record, self._record):
            flaw: Flaw | None = Flaw(f"{place} is of type {type(record).__name__}, not {self._record.__name__}")
        elif record.kind != kind:
            flaw = Flaw(f"{place} calls itself {words(record.kind)!r}, and its entry point is {kind!r}")
        else:
            try:
                flaw = self._check(record)
            except Exception as error:  # noqa: BLE001 - as above, for a foreign record
                flaw = Flaw(f"{place} cannot be checked: {shown(error)}")
        return record if flaw is None else Broken(kind, whose, flaw.fact, flaw.remedy)


def offers(group: str) -> tuple[Offer, ...]:
    by_distribution: dict[str, tuple[Offer, ...]] = {}
    for distribution in distributions():
        if (offered := _offered(distribution, group)) and offered[0].distribution not in by_distribution:
            by_distribution[offered[0].distribution] = offered  # the first on the path is the one that is imported
    return tuple(offer for offered in by_distribution.values() for offer in offered)


def registered(group: str, name: str, form: Callable[[Any], bool] = callable) -> Any:
    """What the first distribution that offers this name registers; None where none does. form: whether it is what the
    group takes. OutsideFault where it cannot be used."""
    offer = next((offer for offer in offers(group) if offer.name == name), None)
    return None if offer is None else _loaded(offer, group, form)


def usable(group: str, form: Callable[[Any], bool]) -> list[Any]:
    """What cannot be used affects nothing else."""
    objects = []
    for offer in offers(group):
        with suppress(OutsideFault):
            objects.append(_loaded(offer, group, form))
    return objects


def _loaded(offer: Offer, group: str, form: Callable[[Any], bool]) -> Any:
    whose = f"The {WHAT[group]} {offer.name!r} of {offer.distribution}"
    if offer.point is None:
        raise OutsideFault(f"{offer.distribution}: {offer.fact}", remedy=_repair(offer.distribution))
    try:
        registered_object = offer.point.load()
    except OutsideFault:
        raise
    except (Exception, SystemExit) as error:
        raise OutsideFault(f"{whose} does not load: {shown(error)}", remedy=_repair(offer.distribution)) from error
    if not form(registered_object):
        raise OutsideFault(f"{whose} is of type {type(registered_object).__name__}, and cannot be used", remedy=AUTHOR)
    return registered_object


@dataclass(frozen=True, slots=True)
class TookPart:
    """What another distribution registers and whose code was running when an exception was raised. name: as an entry
    point. package: the top-level one. raised: it was raised there, or in a library that it called; else in our code."""

    what: str
    name: str
    distribution: str
    package: str
    raised: bool


def took_part(error: BaseException) -> TookPart | None:
    """By the modules in its traceback; None where none of them is another distribution's."""
    modules = [str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(error.__traceback__)]
    ours = {extension for registers in EXTENSIONS.values() for extension in registers.values()}
    offered = [
        (what, offer)
        for group, what in WHAT.items()
        for offer in offers(group)
        if offer.module and offer.distribution.partition(" ")[0] not in ours
    ]
    raised = True
    for module in reversed(modules):
        whole = _whole(module)
        if whole == __package__:
            raised = False
        elif theirs := [(what, offer) for what, offer in offered if _whole(offer.module) == whole]:
            what, offer = next((pair for pair in theirs if pair[1].module in modules), theirs[0])
            return TookPart(what, offer.name, offer.distribution, whole, raised)
    return None


def _whole(module: str) -> str:
    return module.partition(".")[0]


def _offered(distribution: Distribution, group: str) -> tuple[Offer, ...]:
    """Only a mention of the group is parsed."""
    try:
        text = distribution.read_text("entry_points.txt") or ""
    except (OSError, UnicodeDecodeError):  # it may be anything's: whether it offers something is unknown
        return ()
    if f"[{group}]" not in text:
        return ()
    try:
        whose = f"{words(distribution.metadata['Name'])} {words(distribution.version)}"
    except Exception:  # noqa: BLE001 - without a METADATA file each version of Python raises something else
        whose = "a distribution without a name"
    try:
        return tuple(Offer(whose, point) for point in distribution.entry_points.select(group=group))
    except Exception as error:  # noqa: BLE001 - as it is parsed, for example by an unpacking that fails
        return (Offer(whose, None, f"its entry_points.txt cannot be read: {shown(error)}"),)


def _repair(distribution: str) -> str:
    return f"Install {distribution.partition(' ')[0]} again, in a version for this Loadframe, or uninstall it."


def shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {words(error)}" if words(error) else type(error).__name__
