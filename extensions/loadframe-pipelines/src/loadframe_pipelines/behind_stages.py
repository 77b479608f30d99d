"""What a stage of a pipeline waits for in its server (docs/pipelines.md). Each operation of a stage is one request
there, however many entries it takes."""

from collections.abc import Sequence
from dataclasses import replace

from loadframe.diagnosis.findings import Judge
from loadframe.diagnosis.windows import Window, Windows
from loadframe.knowledge.signature import OWN_PIPELINE, Rank, Signature
from loadframe.model import Evidence, Finding
from loadframe_pipelines.families import STAGES as OF

IN_SERVER = 0.5
"""Share of a stage's busy time from which on most of it is its server's."""
PER_REQUEST = "_per_request"
BELOW = 0.0001
"""Score: after the stage, before what the machine shows."""
RANKS = frozenset({Rank.DISK, Rank.ONE_WRITER, Rank.CACHES, Rank.LOCKS})
"""Causes in the server's time for a request. Its CPUs, its cage and other programs are the same for any request."""


def behind(
    findings: Sequence[Finding], windows: Windows, signatures: Sequence[Signature], judge: Judge
) -> list[Finding]:
    """The findings, followed by what the limiting stage waits for in its server, if it spends half of its time there.
    judge: takes a signature, its rank and the windows."""
    stage = next(
        (finding for finding in findings if finding.id.startswith(OF) and not finding.id.endswith(".queue")), None
    )
    where = windows.place
    if stage is None or OWN_PIPELINE.metric not in where.metrics:
        return list(findings)
    name = stage.id.removeprefix(OF)
    share = where.get(f"{stage.id}.server_share")
    seen = _in_operations(windows, name)
    if share is None or share < IN_SERVER or seen is None:
        return list(findings)
    per = _entries(where, name)
    causes = list[Finding]()
    for signature in signatures:
        if signature.rank not in RANKS or not any(
            condition.per_request or condition.metric.endswith(PER_REQUEST) for condition in signature.present
        ):
            continue
        cause = judge(signature, seen)
        if isinstance(cause, Finding) and cause.id not in {known.id for known in causes}:
            causes.append(_in_requests(cause, stage, share, where, per))
    if not causes:
        return list(findings)
    causes.sort(key=lambda cause: -cause.score)
    seen_there = "; ".join(cause.title for cause in causes)
    why = f"For {100 * share:.0f} % of that time it waits for its server. What is seen there: {seen_there}."
    explained = [
        replace(finding, explanation=f"{finding.explanation} {why}".strip()) if finding is stage else finding
        for finding in findings
    ]
    others = [finding for finding in explained if finding.id not in {cause.id for cause in causes}]
    placed = [replace(cause, score=stage.score - BELOW * number) for number, cause in enumerate(causes, 1)]
    return [*others, *placed]


def _in_requests(cause: Finding, stage: Finding, share: float, where: Window, per: float) -> Finding:
    """In requests of the load, as all other evidence, and with that of the stage."""
    name = stage.id.removeprefix(OF)
    more = f"a request of the server is an operation of {name}, which takes {per:.3g} entries"
    evidence = [
        replace(
            measured,
            value=measured.value / per,
            threshold=measured.threshold / per,
            source=f"{measured.source}; {more}",
        )
        if measured.metric.endswith(PER_REQUEST)
        else measured
        for measured in cause.evidence
    ]
    source = "most of the time at work is spent in calls to the server"
    spent = Evidence(f"{stage.id}.server_share", share, ">=", IN_SERVER, where.words, source)
    return replace(
        cause,
        evidence=(*evidence, spent),
        reached_at=cause.reached_at or stage.reached_at,
        explanation=f"It is what {name} waits for. {cause.explanation}",
        behind=stage.id,
    )


def _entries(window: Window, name: str) -> float:
    return window.metrics["throughput"] / window.metrics[f"{OF}{name}.done"]


def _in_operations(windows: Windows, name: str) -> Windows | None:
    metric = f"{OF}{name}.done"
    all_ = (windows.below, windows.past, windows.top, windows.whole, *windows.levels)
    if any((window.get(metric) or 0.0) <= 0 or window.metrics["throughput"] <= 0 for window in all_):
        return None
    return replace(
        windows,
        below=_window(windows.below, name),
        past=_window(windows.past, name),
        top=_window(windows.top, name),
        whole=_window(windows.whole, name),
        levels=tuple(_window(window, name) for window in windows.levels),
    )


def _window(window: Window, name: str) -> Window:
    per = _entries(window, name)
    scaled = {metric: value * per for metric, value in window.metrics.items() if metric.endswith(PER_REQUEST)}
    return replace(window, metrics={**window.metrics, **scaled, "throughput": window.metrics[f"{OF}{name}.done"]})
