"""What a run is made for besides an investigation: how the answer is kept, completed and written down. Other
distributions register theirs (docs/extensions.md)."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from loadframe.analysis import cpu_use
from loadframe.entry_points import ANSWERS_GROUP, EXTENSIONS, not_installed, offers, registered
from loadframe.errors import RunError
from loadframe.experiments.climbing import Climbed
from loadframe.experiments.side_by_side import START
from loadframe.experiments.writing import Ended, copied, finish
from loadframe.model import Capacity, Ladder, RunAnswer
from loadframe.reporting.document import About
from loadframe.reporting.reports import FORMS, Form, render_page
from loadframe.runs.folder import REPORT, RunFolder
from loadframe.runs.formats import NamedSchema
from loadframe.runs.record import describe_study

Answer = TypeVar("Answer", bound=RunAnswer)
NAME = re.compile(r"[a-z][a-z0-9-]*")
TAKEN = frozenset(
    {"bench", "conduct", "findings", "forecast", "host", "investigation", "rounds", "run", "stop", "study", "verdicts"}
)
"""Documents that every run may have."""


@dataclass(frozen=True, slots=True)
class KindOfAnswer(Generic[Answer]):
    """kind: its record is KIND.json. completed: adds what else the run folder has. files: texts by name, next to the
    report."""

    kind: str
    record: type[Answer]
    schema: NamedSchema
    form: Form
    completed: Callable[[RunFolder, Answer, Ended], Answer]
    files: Callable[[Answer], Mapping[str, str]] = lambda _: {}

    @property
    def file(self) -> str:
        return f"{self.kind}.json"

    def stored(self, run: RunFolder) -> Answer | None:
        """The run's answer; None for runs of another kind."""
        return run.record(self.file, self.schema, self.record)

    def save(self, run: RunFolder, answer: Answer) -> None:
        run.write_record(self.file, self.schema, answer)

    def write(self, run: RunFolder, end: Ended | None = None) -> Answer:
        """end: where the tables are written already. RunError without a record or a finished step."""
        stored = self.stored(run)
        if stored is None or (end is None and not run.steps()):
            raise RunError(f"{run.path} has no finished step", remedy="It was stopped early; run it again.")
        end = finish(run) if end is None else end
        answer = self.completed(run, stored, end)
        self.save(run, answer)
        for name, text in self.files(answer).items():
            run.write_text(name, text)
        run.write_report(render_page(answer, About(end.run, end.study, end.host), end.quality))
        return answer


def _whole_ladder(run: RunFolder, ladder: Ladder, end: Ended) -> Ladder:
    titles = {name: "" if name == START else treatment.title for name, treatment in run.treatments().items()}
    return replace(
        ladder,
        run=end.run,
        report=end.report,
        quality=end.quality,
        seconds=end.quality.seconds,
        hosts=run.hosts_alike(),
        warnings=end.after(ladder.warnings),
        finished=run.closed(),
        cpu_use=cpu_use.of_states(run.steps(), titles),
        to_copy=copied(run.declared(), ladder.net_changes),
    )


LADDER = KindOfAnswer("ladder", Ladder, "ladder-record", FORMS[Ladder], _whole_ladder)
CAPACITY = KindOfAnswer(
    "capacity", Capacity, "capacity-record", FORMS[Capacity], lambda _, capacity, end: replace(capacity, run=end.run)
)
OWN: tuple[KindOfAnswer[Any], ...] = (LADDER, CAPACITY)


def of_run(run: RunFolder) -> KindOfAnswer[Any] | None:
    """None for an investigation, or without an answer. MissingTool, OutsideFault where its distribution is missing or
    unusable."""
    if (own := next((kind for kind in OWN if run.has(kind.file)), None)) is not None:
        return own
    offered = {offer.name for offer in offers(ANSWERS_GROUP) if NAME.fullmatch(offer.name)} - TAKEN
    others = {*EXTENSIONS[ANSWERS_GROUP], *offered}
    name = next((name for name in sorted(others) if run.has(f"{name}.json")), None)
    if name is None:
        return None
    kind: KindOfAnswer[Any] | None = registered(ANSWERS_GROUP, name, lambda kind: isinstance(kind, KindOfAnswer))
    if kind is None:
        raise not_installed(ANSWERS_GROUP, name, str(run.place(f"{name}.json")))
    return kind


def save_ladder(run: RunFolder, climbed: Climbed, *, keeps_all: bool) -> None:
    ladder = Ladder(
        run=str(run.path),
        report=str(run.place(REPORT)),
        study=describe_study(run.declared(), run.bench()),
        host=run.host(),
        rungs=climbed.rungs,
        total=climbed.total,
        interactions=climbed.interactions,
        keeps_all=keeps_all,
        finished=False,
        warnings=climbed.missing,
    )
    LADDER.save(run, ladder)
