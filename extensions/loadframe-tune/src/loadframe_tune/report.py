"""The result of a search for settings, as a document."""

from collections.abc import Iterator, Mapping

from loadframe.model import Change
from loadframe.progress import counted
from loadframe.reporting import change_words, facts, rounding, trials, verdict_words, words
from loadframe.reporting import document as doc
from loadframe.reporting.capacity_report import objective
from loadframe_tune.model import ObjectiveSide, TrialReason, TunedSetting, Tuning, TuningProof, TuningTrial

MOST_TRIALS = 8
REASONS: Mapping[TrialReason, str] = {
    "start": "the start itself",
    "diagnosis": "a remedy for the cause found",
    "search": "highest expected gain",
    "again": "repeated to be sure",
}
MISSED = "the objective is missed"
VALUES = "The value of each setting"
WORTH_NOTE = (
    "Throughput with a value against that with the value before, all others as after; 95 % intervals. An estimate from "
    "all trials together, shrunken towards no effect: it chose what was tried and proves nothing. Of a setting that "
    "stays, its most promising other value."
)


def of(tuning: Tuning) -> doc.Document:
    study, host = tuning.study, tuning.host
    about = None if study is None or host is None else doc.About(tuning.run, study, host)
    left_out = tuple((doc.Span(name, "code"), words.sentence(why)) for name, why in tuning.left_out.items())
    return doc.Document(
        kind="Search for settings",
        answer=(answer(tuning),),
        sections=(
            doc.section("Settings to copy", "settings", _settings(tuning), "Settings to copy"),
            doc.section("The proof", "proof", _proof(tuning), "The proof"),
            doc.section("Other proofs, which failed", "other-proofs", _failed(tuning)),
            doc.section("The objective", "objective", _objective(tuning)),
            doc.section("Settings that were varied, and the value of each", "worth", _worth(tuning), VALUES),
            doc.section("Every trial, the best first", "trials", _trials(tuning), "Every trial"),
            doc.section("Not varied", "left-out", [doc.Facts(left_out, "facts wide-facts")]),
            doc.environment(about),
            doc.quality(tuning.quality, tuning.warnings),
            doc.reproduce(
                tuning.run,
                ("loadframe tune {study}", "the whole search"),
                ("loadframe tune {study} --resume {run}", "go on from its trials"),
            ),
        ),
        about=about,
        empty="No trial was completed.",
        asides=tuple(_asides(tuning)),
        report=tuning.report,
    )


def _asides(tuning: Tuning) -> Iterator[doc.Aside]:
    verdict, changing = tuning.reported, changed(tuning)
    if verdict is not None:
        levels = verdict_words.verdict_levels(verdict, tuning.study.load_unit) if tuning.study else ""
        fresh = "" if verdict.may_overstate else " fresh"
        overstated = verdict_words.MAY_OVERSTATE if verdict.may_overstate else ""
        throughput = f"the throughput {levels}, in {verdict.blocks}{fresh} blocks"
        lines = (throughput, verdict_words.confident_interval(verdict), overstated)
        yield doc.Aside(verdict_words.headline(verdict), tuple(filter(None, lines)), "gain", "page")
    if tuning.end == "gained":
        yield doc.Aside("What changes", (f"{words.and_list(list(map(change_words.change, _changes(tuning))))}.",))
    if verdict is not None:
        yield doc.Aside("Proof", (verdict_words.proof_sentence(verdict, tuning.axis_unit),))
    yield doc.Aside("To copy", tuple(tuning.file_text.splitlines()), only="screen")
    yield doc.Aside("Next", (_next_step(tuning),), "next")
    if given_up := _prices(tuning):
        yield doc.Aside("Given up for it", (" ".join(given_up),))
    if verdict is not None:
        yield doc.Aside("Gain expected from the trials", (f"{rounding.plain(tuning.expected)} times, after shrinkage",))
    if tuning.objective is not None and verdict is not None:
        kept = f"Met {_blocks(tuning)} at every judged level." if tuning.objective.met else f"Missed {_blocks(tuning)}."
        yield doc.Aside("The objective", (kept,))
    if tuning.findings:
        yield doc.Aside("Cause found at the start", (" ".join(words.sentence(title) for title in tuning.findings),))
    restart = [setting.name for setting in changing if setting.restart]
    if restart and tuning.end == "gained":
        yield doc.Aside("Needs a restart", (words.and_list(restart),))
    yield doc.brief_quality(tuning.quality)


def _settings(tuning: Tuning) -> Iterator[doc.Block]:
    if not tuning.file_text:
        return
    where = doc.Span(f"{tuning.run}/{tuning.file_name}", "code")
    yield doc.Prose(("As the target's own file has them, in ", where, ":"))
    yield doc.Settings(tuple(tuning.file_text.splitlines()))
    yield doc.Group((doc.Diff(tuple(_changes(tuning))),), summary="Before and after", only="page")
    yield from (doc.Prose(text, "price") for text in _prices(tuning))


def _proof(tuning: Tuning) -> Iterator[doc.Block]:
    proof = tuning.proof
    if proof is None or not proof.levels:
        return
    gain = words.sentence(verdict_words.gain_sentence(proof.reported, tuning.axis_unit))
    sentences = (gain, _deciding_sentence(tuning), verdict_words.block_ratios(proof.reported))
    yield doc.Prose(" ".join(filter(None, sentences)))
    work = f"{tuning.study.work_unit}/s" if tuning.study else "per second"
    yield trials.levels(proof.levels, tuning.axis_unit, f"As given, {work}", f"With the best, {work}")
    chose = "once the settings had been proved, and chose nothing"
    if not proof.fresh:
        decided = "; they decided that the settings are recommended" if tuning.end == "gained" else ""
        chose = f"after the search, which did not see them{decided}"
    method = words.strip(proof.reported.method)
    yield doc.Prose(f"Method: {method}. These blocks were measured {chose}.", "note")


def _failed(tuning: Tuning) -> tuple[doc.Block, ...]:
    items: list[doc.Words] = []
    for proof in other_proofs(tuning):
        changes = ", ".join(f"{name} = {facts.shown(value)}" for name, value in proof.changes.items())
        expected = f"The trials had predicted {rounding.plain(proof.expected)} times."
        sentence = verdict_words.gain_sentence(proof.reported)
        if proof.verdict.decision == "better":
            taken_back = proof.reported.decision == "worse"
            sentence = f"{verdict_words.TAKEN_BACK}: {sentence}" if taken_back else f"{sentence}, but {MISSED}"
        items.append((doc.Span(changes, "code"), f": {sentence}. {expected}"))
    note = doc.Prose("All proofs of a search together are wrong in at most 5 % of searches.", "note")
    return (doc.Items(tuple(items)), note) if items else ()


def _objective(tuning: Tuning) -> Iterator[doc.Block]:
    if tuning.objective is None:
        return
    missed = sum(bool(trial.missed) for trial in tuning.trials)
    trials = f" {counted(missed, 'trial')} clearly missed it." if missed else ""
    yield doc.Prose(f"The objective: {objective(tuning.objective.asked)}.{trials} At the levels that were judged:")
    levels = (
        f"{words.load(level.load, tuning.axis_unit)}: as given {_side(level.before)}"
        + ("" if level.after is None else f"; {_blocks(tuning)} with the best settings {_side(level.after)}")
        for level in tuning.objective.levels
    )
    yield doc.Items(tuple(map(words.sentence, levels)))


def _worth(tuning: Tuning) -> Iterator[doc.Block]:
    estimated = doc.Column("Estimated from the trials", "Worth")
    columns = ("Setting", "Before", "After", estimated, doc.Column("Values allowed", "Values", only="page"))

    def rank(setting: TunedSetting) -> tuple[bool, float]:
        return setting.after == setting.before, -(setting.worth.ratio if setting.worth else 0.0)

    yield doc.Table(columns, tuple(map(_setting, sorted(tuning.settings, key=rank))))
    yield doc.Prose(WORTH_NOTE, "note")


def _setting(setting: TunedSetting) -> doc.Row:
    stays = setting.after == setting.before
    name = (doc.Span(setting.name, "code"), *([doc.Span("needs a restart", "below")] if setting.restart else []))
    after: doc.Words = "stays" if stays else doc.Span(facts.shown(setting.after), "code")
    values = doc.code_list([facts.shown(value) for value in setting.values])
    return doc.Row(
        (name, doc.Span(facts.shown(setting.before), "code"), after, worth(setting), values), "quiet" if stays else ""
    )


def _trials(tuning: Tuning) -> Iterator[doc.Block]:
    if not tuning.trials:
        return
    number, ratio = doc.Column("Trial", side=">"), doc.Column("Against the start", "Ratio", ">")
    columns = (number, ratio, "What changes", doc.Column("Why", only="page"), "Outcome")
    ranked = sorted(tuning.trials, key=lambda trial: -(trial.ratio or 0.0))
    failed = sum(trial.ratio is None for trial in tuning.trials)
    early = sum(trial.ended_early for trial in tuning.trials)
    counts = {f"{len(tuning.trials)} trials": True, f"{failed} failed": failed, f"{early} were ended early": early}
    head = ", ".join(text for text, count in counts.items() if count)
    yield doc.Group((doc.Table(columns, tuple(map(_trial, ranked)), most=MOST_TRIALS),), summary=head)


def _trial(trial: TuningTrial) -> doc.Cells:
    changes = [f"{name} = {facts.shown(value)}" for name, value in trial.changes.items()]
    return (
        f"{trial.number}{f' on {trial.host}' if trial.host else ''}",
        "" if trial.ratio is None else rounding.plain(trial.ratio),
        doc.code_list(changes) or "as given",
        REASONS[trial.reason],
        fate(trial),
    )


def answer(tuning: Tuning) -> str:
    """What to set and its gain, without an interval where it is proved."""
    varied = f"{counted(len(tuning.trials), 'trial')} of {len(tuning.settings)} settings"
    if tuning.end == "stopped":
        return f"Stopped after {varied}; nothing was proved. Go on with --resume."
    if tuning.end == "nothing-better":
        return f"Nothing better was found in {varied}: leave the settings as they are."
    proof = tuning.proof
    assert proof is not None, "the recommendation was proved"
    if tuning.end == "gained":
        kept = "" if tuning.objective is None else ", and the objective is met"
        gain = verdict_words.led_gain(proof.reported, tuning.axis_unit)
        names = [f"{change.setting} = {facts.shown(change.after)}" for change in _changes(tuning)]
        proved = f"Set {names[0] if len(names) == 1 else f'the {len(names)} settings below'}: "
        if gain and proof.reported.may_overstate:
            kept += "; it may be overstated, as the same blocks decided"
        if not gain:
            gain = verdict_words.gain_sentence(proof.reported, tuning.axis_unit)
            proved = "A gain was proved; in fresh blocks " if proof.reported.decision != "better" else ""
        count = len(tuning.failed_proofs)
        proofs = f" in {count} proofs" if count > 1 else " in its proof"
        failed = f"; settings with a higher expected gain did not hold{proofs}" if count else ""
        return f"{proved}{gain}{kept}. Found in {varied}{failed}."
    outcome = f": {verdict_words.without_ratio(proof.reported)}"
    if proof.reported.has_ratio:
        times = verdict_words.times_the_throughput(proof.reported, tuning.axis_unit)
        outcome = f" gives {times} in fresh blocks"
    best = f"the best of {varied}{outcome}"
    if proof.verdict.decision == "better" and proof.reported.decision != "worse":
        return (
            f"No gain within the objective: {best}, and misses the objective there{_after_it(tuning)}. "
            "Leave the settings as they are."
        )
    first = "" if proof.fresh is None else f", after {verdict_words.ratio_words(proof.verdict)} in the deciding blocks"
    return f"No proven gain: {best}{first}{_after_it(tuning)}. Leave the settings as they are."


def _deciding_sentence(tuning: Tuning) -> str:
    if tuning.end != "gained" or tuning.proof is None:
        return ""
    if tuning.proof.fresh is None:
        return "No time was left for fresh blocks: the gain comes from the deciding blocks and is likely too high."
    return words.sentence(f"the gain is {verdict_words.fresh_words(tuning.proof.verdict)}")


def _after_it(tuning: Tuning) -> str:
    count = len(other_proofs(tuning))
    return f", and the next best {'one' if count == 1 else f'{count} ones'} did not hold either" if count else ""


def _blocks(tuning: Tuning) -> str:
    return "in fresh blocks" if tuning.proof and tuning.proof.fresh else "in the proof"


def _side(side: ObjectiveSide) -> str:
    lost = f", {100 * side.lost_share:.2g} % lost" if side.lost_share else ""
    latency = words.milliseconds(side.latency_p95_ms) if side.latency_p95_ms else "no response time"
    return f"{latency}{lost} ({'met' if side.met else 'missed'})"


def other_proofs(tuning: Tuning) -> list[TuningProof]:
    """The failed proofs without the one that the answer is about."""
    return list(tuning.failed_proofs if tuning.end in ("gained", "stopped") else tuning.failed_proofs[1:])


def changed(tuning: Tuning) -> list[TunedSetting]:
    return [setting for setting in tuning.settings if setting.after != setting.before]


def _changes(tuning: Tuning) -> list[Change]:
    return [Change("server", setting.name, setting.before, setting.after) for setting in changed(tuning)]


def worth(setting: TunedSetting) -> str:
    """ "1.8 times (1.5 to 2.1)"; for a setting that stays, with the value that was estimated."""
    estimate = setting.worth
    if estimate is None:
        return ""
    ratio, low, high = rounding.with_interval(estimate.ratio, estimate.low, estimate.high)
    of = "" if setting.after != setting.before else f"{facts.shown(estimate.value)}: "
    return f"{of}{ratio} times ({low} to {high})"


def _next_step(tuning: Tuning) -> str:
    match tuning.end:
        case "stopped":
            return "Go on from its trials: the command is below, at Reproduce."
        case "gained" if tuning.proof and tuning.proof.fresh is None:
            return (
                "Measure the gain again before you rely on it: there was no time for fresh blocks. "
                "loadframe tune --resume goes on from its trials, with a larger measure.budget."
            )
        case "gained":
            return "Set them. Next, loadframe investigate with these settings names what limits now."
    return "Leave the settings as they are. Next, loadframe investigate names what limits, and tries its remedies."


def _prices(tuning: Tuning) -> list[str]:
    return [
        f"{setting.name} = {facts.shown(setting.after)} gives up durability ({setting.gives_up})."
        for setting in changed(tuning)
        if setting.gives_up
    ]


def fate(trial: TuningTrial) -> str:
    missed = f"missed the objective {trial.missed}" if trial.missed else "ended early" if trial.ended_early else ""
    return f"failed: {trial.failed}" if trial.failed else missed
