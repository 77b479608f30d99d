"""The rows of all kinds of server. A page is a module `kinds/NAME/PAGE.py`, or rows in `kinds/NAME/PAGE.toml` (metrics:
`metrics.txt`). Those of other distributions come after ours, checked for form and for names of their own:
`loadframe_toy.kind:KIND` has `loadframe_toy.limits`, or `limits.toml`. These alone are imported, never the entry
point's module, which touches the server. One unusable row makes the whole package unused."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache, wraps
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from math import isfinite
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from loadframe.entry_points import AUTHOR, KINDS_GROUP, Flaw, Offer, offers, shown
from loadframe.errors import OutsideFault
from loadframe.formats.said import words
from loadframe.knowledge.metric import Agreement, Derived
from loadframe.knowledge.remedy import Builder, Situation
from loadframe.knowledge.rows import CLASSES, LAYERS, FrameRow, LimitRule, frame_rows, limit_rules, metric_rows
from loadframe.knowledge.signature import Condition, Signature, Trace, ruled_out_rows, signature_rows, trace_rows
from loadframe.model import Remedy

Page = Literal["metrics", "limits", "signatures", "remedies", "frames"]

OURS = frozenset({
    "cage", "cgroup", "cpu", "disk", "driver", "kernel", "lock",
    "mariadb", "memory", "mysql", "net", "network", "one", "postgres",
    "process", "recorder", "rows", "runtime", "service", "sqlite", "system",
    "target", "throughput", "url", "user", "workload",
})  # fmt: skip
PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
TABLES: Mapping[tuple[Page, str], Any] = {
    ("metrics", "ROWS"): str,
    ("metrics", "IN_FRONT"): tuple[str, ...],
    ("metrics", "DERIVED"): tuple[Derived, ...],
    ("metrics", "AGREEMENTS"): tuple[Agreement, ...],
    ("limits", "LIMITS"): tuple[LimitRule, ...],
    ("signatures", "SIGNATURES"): tuple[Signature, ...],
    ("signatures", "TRACES"): Mapping[str, Trace],
    ("signatures", "RULED_OUT_BY"): Mapping[str, tuple[Condition, ...]],
    ("remedies", "BUILDERS"): Mapping[str, tuple[Callable[..., Any], ...]],
    ("frames", "FRAMES"): tuple[FrameRow, ...],
}
IN_FILES: Mapping[tuple[Page, str], tuple[str, Callable[[Path], object]]] = {
    ("metrics", "ROWS"): ("metrics.txt", metric_rows),
    ("limits", "LIMITS"): ("limits.toml", limit_rules),
    ("signatures", "SIGNATURES"): ("signatures.toml", signature_rows),
    ("signatures", "TRACES"): ("signatures.toml", trace_rows),
    ("signatures", "RULED_OUT_BY"): ("signatures.toml", ruled_out_rows),
    ("frames", "FRAMES"): ("frames.toml", frame_rows),
}
BUILDERS: tuple[Page, str] = ("remedies", "BUILDERS")
FOLDER = Path(__file__).parents[1] / "kinds"
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Home:
    """kinds: their names in studies. tables: none with a flaw."""

    package: str
    distribution: str
    kinds: tuple[str, ...]
    tables: Mapping[tuple[Page, str], Any] = field(default_factory=dict)
    flaw: Flaw | None = None

    @property
    def beginnings(self) -> tuple[str, ...]:
        """How its names begin: its kinds, and its components in front of shards."""
        spelt = (spelling for kind in self.kinds for spelling in (kind, kind.replace("-", "_")))
        return tuple(dict.fromkeys((*spelt, *self.rows("metrics", "IN_FRONT"))))

    def rows(self, page: Page, name: str) -> Any:
        return self.tables.get((page, name), {})

    def owns(self, name: str) -> bool:
        return "." in name and name.partition(".")[0] in self.beginnings


def homes() -> tuple[Home, ...]:
    """The homes of all distributions that register kinds, by name; those without pages too."""
    so_far: list[Home] = []
    for (distribution, package), kinds in sorted(_packages().items()):
        home = _read(Home(package, distribution, tuple(sorted(kinds))))
        others = {beginning: other for other in so_far if other.tables for beginning in other.beginnings}
        if home.tables and (both := [beginning for beginning in home.beginnings if beginning in others]):
            other = others[both[0]]
            fact = f"names that begin with {both[0]!r} are those of {other.distribution}, which is used"
            home = replace(home, tables={}, flaw=Flaw(fact, "Uninstall one of the two."))
        so_far.append(home)
    return tuple(so_far)


def _packages() -> dict[tuple[str, str], list[str]]:
    """None that two offer, that has our name, or without a package."""
    packages: dict[tuple[str, str], list[str]] = {}
    by_name: dict[str, list[Offer]] = {}
    for offer in offers(KINDS_GROUP):
        if offer.point is not None:
            by_name.setdefault(offer.point.name, []).append(offer)
    for name, (offer, *others) in by_name.items():
        if not others and offer.package:
            packages.setdefault((offer.distribution, offer.package), []).append(name)
    return packages


class _Unusable(Exception):  # noqa: N818 - a row is
    ...


def _read(home: Home) -> Home:
    """Where a package does not load, the error of its entry point is enough."""
    try:
        import_module(home.package)
    except (Exception, SystemExit):  # noqa: BLE001 - a stranger's code, which must end no command of ours
        return home
    try:
        tables = {key: table for key in TABLES if (table := _table(home.package, *key)) is not None}
        if not tables:
            return home
        full = replace(home, tables=tables)
        for check in (_check_names, _check_metrics, _check_limits, _check_signatures, _check_frames):
            check(full)
    except _Unusable as unusable:
        return replace(home, flaw=Flaw(str(unusable)))
    if BUILDERS not in tables:
        return full
    held = {cause: tuple(_held(build, full) for build in builders) for cause, builders in tables[BUILDERS].items()}
    return replace(full, tables={**tables, BUILDERS: held})


def _table(package: str, page: Page, name: str) -> Any:
    file, module = _file(package, page, name), f"{package}.{page}"
    try:
        table = getattr(import_module(module), name, None) if find_spec(module) is not None else None
    except (Exception, SystemExit) as error:
        raise _Unusable(f"its {page}.py does not load: {shown(error)}") from error
    if file is not None and table is not None:
        raise _Unusable(f"its {page}.py: {name} is there, and so is {file.name}")
    if file is not None:
        try:
            table = IN_FILES[page, name][1](file)
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise _Unusable(f"its {file.name} cannot be read: {shown(error)}") from error
    if table is not None and (why := _misfit(table, TABLES[page, name])):
        raise _Unusable(f"its {file.name if file is not None else f'{page}.py'}: {name}{why}")
    return table


def _file(package: str, page: Page, name: str) -> Path | None:
    if (page, name) not in IN_FILES:
        return None
    file = Path(str(import_module(package).__file__)).with_name(IN_FILES[page, name][0])
    return file if file.exists() else None


def _misfit(value: Any, form: Any) -> str:
    """Where a value differs from its form, to follow its name; "" for nowhere."""
    origin, inside = get_origin(form), get_args(form)
    if origin in (Union, UnionType):
        misfits = [_misfit(value, inner) for inner in inside]
        return "" if "" in misfits else misfits[0]
    if origin is Literal:
        return "" if value in inside else f" is {_said(value)}, not one of {', '.join(map(str, inside))}"
    if origin is tuple:
        return _misfit_of_each(value, tuple, enumerate(value) if isinstance(value, tuple) else (), inside[0])
    if origin is Mapping:
        items = value.items() if isinstance(value, Mapping) else ()
        if wrong := [key for key, _ in items if not isinstance(key, str)]:
            return f" has the key {_said(wrong[0])}, which is not a str"
        return _misfit_of_each(value, Mapping, items, inside[1])
    if origin is Callable:
        return "" if callable(value) else f" is {_said(value)}, which cannot be called"
    if form is float:
        right = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
        return "" if right else f" is {_said(value)}, not a finite number"
    if not isinstance(value, form) or (form is int and isinstance(value, bool)):
        return f" is {_said(value)}, which is not a {form.__name__}"
    if is_dataclass(form):
        hints = get_type_hints(form)
        for form_field in fields(form):
            if why := _misfit(getattr(value, form_field.name), hints[form_field.name]):
                named = getattr(value, "id", "") or getattr(value, "metric", "") or getattr(value, "pattern", "")
                row = words(named) if isinstance(named, str) else ""
                return f" ({row}): {form_field.name}{why}" if row else f".{form_field.name}{why}"
    return ""


def _misfit_of_each(value: Any, whole: type, items: Iterable[tuple[Any, Any]], form: Any) -> str:
    if not isinstance(value, whole):
        return f" is {_said(value)}, which is not a {whole.__name__}"
    return next((f"[{key!r}]{why}" for key, element in items if (why := _misfit(element, form))), "")


def _said(value: Any) -> str:
    return words(repr(value), 80)


def _place(home: Home, page: Page, name: str) -> str:
    file = _file(home.package, page, name)
    return f"its {file.name if file is not None else f'{page}.py'}: {name}"


def _check_names(home: Home) -> None:
    for name in home.beginnings:
        if not PLAIN.fullmatch(name):
            raise _Unusable(f"its rows cannot begin with {name!r}: a name is letters, digits, _ and -")
        if name in OURS or re.fullmatch(r"shard\d+", name):
            raise _Unusable(f"its rows cannot begin with {name!r}: those are Loadframe's own")
    if clash := set(home.rows("metrics", "IN_FRONT")) & {*home.kinds}:
        raise _Unusable(f"its metrics.py: IN_FRONT has {min(clash)!r}, which is the name of its kind")


def _check_metrics(home: Home) -> None:
    seen: set[str] = set()
    for line in _rows_of_metrics(home):
        cells = [cell.strip() for cell in line.split("|")]
        where = f"{_place(home, 'metrics', 'ROWS')}: {words(line, 80)!r}"
        if len(cells) not in (3, 4) or not all(cells):
            raise _Unusable(f"{where} is not `name | unit | what`, or with `| source`")
        _check_row(home, where, [cells[0]])
        if cells[0] in seen:
            raise _Unusable(f"{where} is there twice")
        seen.add(cells[0])
    for row in home.rows("metrics", "DERIVED"):
        where = f"its metrics.py: DERIVED ({row.metric})"
        _check_row(home, where, [row.metric], (row.metric, *row.needs))
        _check_any_owned(home, row.needs, f"{where}: needs")
    for agreement in home.rows("metrics", "AGREEMENTS"):
        where = f"its metrics.py: AGREEMENTS ({', '.join(agreement.counter)})"
        if not agreement.counter or not agreement.witnesses:
            raise _Unusable(f"{where} has no counter, or no witness")
        measured = (*agreement.counter, *chain.from_iterable(agreement.witnesses))
        _check_row(home, where, (*agreement.counter, *agreement.also), measured)


def _rows_of_metrics(home: Home) -> list[str]:
    rows = home.tables.get(("metrics", "ROWS"), "").splitlines()
    return [row for row in rows if row.strip() and not row.startswith("#")]


def _check_limits(home: Home) -> None:
    seen: set[str] = set()
    for rule in home.rows("limits", "LIMITS"):
        where = f"{_place(home, 'limits', 'LIMITS')} ({words(rule.id)})"
        _check_row(home, where, [rule.id])
        if rule.id in seen:
            raise _Unusable(f"{where} is there twice")
        seen.add(rule.id)
        if rule.layer not in LAYERS:
            raise _Unusable(f"{where}: layer is {_said(rule.layer)}, not one of {', '.join(LAYERS)}")
        read = [rule.use, rule.ceiling, rule.use_now, rule.thrash, rule.errors]
        _check_row(home, where, (), [name for name in read if name is not None and name != "one"])
        _check_any_owned(home, (rule.use, rule.ceiling), f"{where}: use or ceiling")


def _check_signatures(home: Home) -> None:
    for signature in home.rows("signatures", "SIGNATURES"):
        where = f"{_place(home, 'signatures', 'SIGNATURES')} ({words(signature.id)})"
        _check_row(home, where, [signature.id])
        if not signature.present:
            raise _Unusable(f"{where}: present has no condition")
        _check_any_owned(home, [signature.present[0].metric], f"{where}: the first metric of present")
        _check_row(home, where, (), [condition.metric for condition in (*signature.present, *signature.absent)])
    for cause, trace in home.rows("signatures", "TRACES").items():
        where = f"{_place(home, 'signatures', 'TRACES')}[{words(cause)!r}]"
        _check_row(home, where, [cause], [name for name in (trace.metric, trace.ceiling) if name])
    for cause, conditions in home.rows("signatures", "RULED_OUT_BY").items():
        where = f"{_place(home, 'signatures', 'RULED_OUT_BY')}[{words(cause)!r}]"
        metrics = [condition.metric for condition in conditions]
        _check_row(home, where, metrics, metrics)


def _check_frames(home: Home) -> None:
    for row in home.rows("frames", "FRAMES"):
        where = f"{_place(home, 'frames', 'FRAMES')} ({words(row.pattern, 80)})"
        if row.class_id not in CLASSES:
            raise _Unusable(f"{where}: class_id is {_said(row.class_id)}, not one of {', '.join(CLASSES)}")
        try:
            re.compile(row.pattern)
        except re.error as error:
            raise _Unusable(f"{where}: pattern is no regular expression: {words(error)}") from error


def _check_any_owned(home: Home, names: Sequence[str], where: str) -> None:
    """A row that holds for every server would have to be one of ours."""
    if not any(home.owns(name) for name in names):
        raise _Unusable(f"{where} must begin with {_beginnings(home)}: otherwise the row holds for every server")


def _check_row(home: Home, where: str, owned: Sequence[str], measured: Sequence[str] = ()) -> None:
    """owned: names that must be its own. measured: metrics; its own must be in its ROWS, but those of its components in
    front are the recorder's."""
    if others := [name for name in owned if not home.owns(name)]:
        raise _Unusable(f"{where}: {words(others[0])!r} must begin with {_beginnings(home)}, the kind's own name")
    known = {row.partition("|")[0].strip() for row in _rows_of_metrics(home)}
    front = home.rows("metrics", "IN_FRONT")
    for name in measured:
        if home.owns(name) and name.partition(".")[0] not in front and name not in known:
            raise _Unusable(f"{where}: the metric {words(name)!r} is not in {_place(home, 'metrics', 'ROWS')}")


def _beginnings(home: Home) -> str:
    return " or ".join(f"'{name}.'" for name in home.beginnings)


def _held(build: Builder, home: Home) -> Builder:
    @wraps(build)
    def held(situation: Situation) -> Remedy | None:
        if situation.target_kind not in home.kinds:
            return None
        made = build(situation)
        if made is not None and (why := _misfit(made, Remedy)):
            name = f"{build.__module__}.{getattr(build, '__name__', 'BUILDERS')}"
            raise OutsideFault(f"{home.distribution}: the remedy that {name} made{why}", remedy=AUTHOR)
        return made

    return held


@cache
def _own(page: Page, name: str) -> Mapping[str, object]:
    if (page, name) in IN_FILES:
        file_name, read = IN_FILES[page, name]
        return {file.parent.name: read(file) for file in sorted(FOLDER.glob(f"*/{file_name}"))}
    there = sorted(path.parent.name for path in FOLDER.glob(f"*/{page}.py"))
    modules = {kind: import_module(f"loadframe.kinds.{kind}.{page}") for kind in there}
    return {kind: getattr(module, name) for kind, module in modules.items() if hasattr(module, name)}


_outside = cache(homes)


def tables(page: Page, name: str, form: type[Row]) -> dict[str, Row]:
    """Tables of this name, in alphabetical order: ours by folder, others by their first kind. TypeError for another
    form."""
    by_kind: dict[str, Row] = {}
    for kind, table in _own(page, name).items():
        if not isinstance(table, form):
            raise TypeError(f"kinds.{kind}.{page}.{name} is a {type(table).__name__}, not a {form.__name__}")
        by_kind[kind] = table
    by_kind |= {home.kinds[0]: home.tables[page, name] for home in _outside() if (page, name) in home.tables}
    return dict(sorted(by_kind.items()))


def rows(page: Page, name: str, form: type[Row]) -> dict[str, tuple[Row, ...]]:
    """As `tables`. TypeError for another row."""
    by_kind = tables(page, name, tuple)
    for kind, table in by_kind.items():
        if wrong := [row for row in table if not isinstance(row, form)]:
            raise TypeError(f"kinds.{kind}.{page}.{name} has {wrong[0]!r}, which is not a {form.__name__}")
    return by_kind


def rows_of(kind: str) -> str:
    """The first of the kinds that a kind's distribution registers; else itself."""
    return next((home.kinds[0] for home in _outside() if kind in home.kinds), kind)


def flaw(kind: str) -> Flaw | None:
    """None where the pages are used, or there are none."""
    return next((home.flaw for home in _outside() if kind in home.kinds), None)
