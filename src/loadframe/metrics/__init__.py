"""Every metric by its name: what it is and its unit.

Names follow OpenTelemetry's semantic conventions where they exist (see CONVENTIONS); those of one component of the
study begin with the component (`target.`, `driver.`, `recorder.`, and `loader.`, `shard1.`, ... of a target in several
pieces); server counters begin with the kind of the server and are in its folder (`kinds/NAME/metrics.py`). Shares are
0..1, rates are per second, `cores` are CPU-seconds per second.
"""

from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

from loadframe.knowledge.kinds import rows, tables
from loadframe.metrics import exposed, families, pipelines

IN_FRONT: tuple[str, ...] = tuple(chain.from_iterable(rows("metrics", "IN_FRONT", str).values()))
"""Components in front of a target's shards; each has a cage with limits of its own."""
MOST_SHARDS = 16
"""Enough for any machine that one command measures."""


@dataclass(frozen=True, slots=True)
class Metric:
    """name: as in Step.metrics. unit: as units.show takes it. what: one line for people."""

    name: str
    unit: str
    what: str

    @property
    def alone(self) -> str:
        """What it is, for places without a column that marks it as a share."""
        return f"share {self.what}" if self.what.startswith("of the ") else self.what


def _table(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8", errors="strict")


def _cells(table: str) -> list[list[str]]:
    """The rows of a table, without comments."""
    lines = (line for line in table.splitlines() if line and not line.startswith("#"))
    return [[cell.strip() for cell in line.split("|")] for line in lines]


METRICS: dict[str, Metric] = {}
CONVENTIONS = dict(_cells(_table("conventions.txt")))
"""Our name -> the one of the semantic conventions."""


def register(rows: str, component: str = "", words: str = "") -> None:
    """Rows of name | unit | what. component: prefix of the names; words: for {}. ValueError for a known name."""
    for end, unit, what, *_ in _cells(rows):
        name, what = f"{component}{end}", what.replace("{}", words) if component else what
        if name in METRICS:
            raise ValueError(f"the metric {name} is registered twice")
        METRICS[name] = Metric(name, unit, what)


def _register_pieces() -> None:
    """Metrics of the target as the recorder reads them, for each of its pieces."""
    whole = [metric for metric in METRICS.values() if metric.name.startswith(families.OF_EACH_COMPONENT)]
    pieces = {f"shard{number}": f"shard {number}" for number in range(1, MOST_SHARDS + 1)}
    pieces |= {name: f"the {name}" for name in IN_FRONT}
    for piece, words in pieces.items():
        for metric in whole:
            name = metric.name.replace("target", piece, 1)
            METRICS[name] = Metric(name, metric.unit, metric.what.replace("the target", words))


for _rows in (_table("metrics.txt"), *tables("metrics", "ROWS", str).values()):
    register(_rows)
register(_table("cage_metrics.txt"), "target.", "the target")
register(_table("cage_metrics.txt"), "driver.", "the load driver")
_register_pieces()


def metric(name: str) -> Metric:
    """What a metric is: from tables, else from its name (families.py, exposed.py); an unknown one has its name."""
    if name not in METRICS and (meaning := _told(name)) is not None:
        return Metric(name, *meaning)
    return METRICS.get(name) or Metric(name, "", name)


def is_known(name: str) -> bool:
    """Whether it is registered, one of a family, or one that a service exposes."""
    return name in METRICS or _told(name) is not None


@cache
def _told(name: str) -> tuple[str, str] | None:
    if name.startswith(exposed.OF):
        return exposed.unit_of(name), exposed.what_of(name)
    if name.startswith((pipelines.STAGES, pipelines.LOGS)):
        return pipelines.told(name)
    return families.told(name, {row.name: (row.unit, row.what) for row in METRICS.values()})


def convention(metric: str) -> str | None:
    """The name of the semantic conventions for a metric; None where they have none."""
    component, _, rest = metric.partition(".")
    general = f"COMPONENT.{rest}" if component.startswith(("target", "driver", "shard", *IN_FRONT)) else metric
    return CONVENTIONS.get(general)
