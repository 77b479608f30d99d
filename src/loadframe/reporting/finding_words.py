"""Only a confirmed cause is stated as a fact."""

import math
import re

from loadframe.diagnosis.growing import GROWTH
from loadframe.diagnosis.signatures import SIGNATURES
from loadframe.diagnosis.sizes import PARALLELISM, SERIAL
from loadframe.metrics import METRICS, is_known
from loadframe.metrics import metric as metric_of
from loadframe.model import Evidence, Finding, Investigation, Limit
from loadframe.reporting import facts, verdict_words, words
from loadframe.units import show_metric

COMPARISONS = {
    ">": "more than",
    ">=": "at least",
    "<": "less than",
    "<=": "at most",
    "==": "exactly",
    "!=": "other than",
    "~": "about",
}


def metric_words(metric: str) -> str:
    if not is_known(metric):
        return metric.replace(".", " ").replace("_", " ")
    what = metric_of(metric).what
    if (rest := what.removeprefix("of these ")) != what:
        # The registry lists such a metric below its whole ("threads of the target"); alone it has to name it.
        whole = METRICS.get(f"{metric.rpartition('.')[0]}.count")
        return f"{whole.what if whole else 'those'} {rest}"
    return f"share {what}" if what.startswith("of the ") else what


def evidence_threshold(evidence: Evidence) -> str:
    if not math.isfinite(evidence.threshold):
        return ""
    comparison = evidence.comparison.strip()
    return f"{COMPARISONS.get(comparison, comparison)} {show_metric(evidence.metric, evidence.threshold)}".strip()


def evidence_window(evidence: Evidence, unit: str) -> str:
    numbers = re.search(r", at [\d.,e+-]+( to [\d.,e+-]+)?$", evidence.window)
    return f"{evidence.window} {unit}" if numbers and unit else evidence.window


def evidence_value(evidence: Evidence) -> str:
    return f"{metric_words(evidence.metric)}: {show_metric(evidence.metric, evidence.value)}"


def evidence_sentence(evidence: Evidence) -> str:
    threshold = evidence_threshold(evidence)
    note = "; ".join(filter(None, (threshold and f"threshold: {threshold}", evidence.window)))
    return f"{evidence_value(evidence)}{f' ({note})' if note else ''}"


def mechanism_sentence(finding: Finding) -> str:
    if finding.mechanism is None:
        return ""
    if finding.id in GROWTH:
        return finding.mechanism.because
    return f"its mechanism{' moved' if finding.status == 'confirmed' else ''}: {finding.mechanism.because}"


def is_suspected_growth(finding: Finding) -> bool:
    return finding.id in GROWTH and finding.status == "suspected"


def sentence(inv: Investigation, finding: Finding) -> str:
    unit = inv.study.load_unit
    start = f", from {words.load_interval(finding.reached_at, unit)} on" if finding.reached_at else ""
    against = "".join(
        f"; {state}, this spoke against it: {words.strip(why)}" for state, why in facts.ruled_out_in(inv, finding)
    )
    why = f"; {words.strip(mechanism_sentence(finding))}" if is_suspected_growth(finding) and finding.mechanism else ""
    where = f" on the host {finding.host}" if finding.host else ""
    return f"{words.strip(finding.title)}{where}{start} ({verdict_words.status(finding)}{why}{against})"


TITLES = {
    **{signature.id: signature.title for signature in reversed(SIGNATURES)},
    PARALLELISM: "a fixed number of requests is served at a time",
    SERIAL: "one request is served at a time",
}


def chain(inv: Investigation, limit: Limit) -> str:
    titles = facts.titles_of(inv.rounds)
    return "; ".join(titles[id_] for id_ in limit.chain if id_ in titles)


def cause(inv: Investigation, id_: str) -> str:
    """The title of this run's finding or limit, else of the signature, else the id in words."""
    rounds = (*inv.rounds, *(alternative.round for alternative in inv.alternatives))
    findings = {finding.id: finding.title for round_ in rounds for finding in round_.findings if finding.title}
    titles = TITLES | facts.titles_of(rounds) | findings
    return words.heading(titles.get(id_, id_.replace(".", ": ", 1).replace("_", " ")))


def remedy(inv: Investigation, id_: str) -> str:
    titles = {trial.remedy.id: trial.remedy.title for round_ in inv.rounds for trial in round_.tried}
    return words.heading(titles.get(id_, id_))
