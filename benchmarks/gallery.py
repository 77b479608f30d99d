"""The gallery of the cases' reports, from real runs: python benchmarks/gallery.py [--from RUNS] [--keep] [CASE...]

Runs each case with its quick profile (a minute or two each), and writes docs/gallery.md, with what stands first in each
report, and docs/images/gallery/CASE-STUDY.svg, its first figure. With --from, the latest run of each study in that
folder is taken, and nothing is measured; a study without a run there is named, and left out. With names of cases, only
those are run again: --from has to have the others. With --keep, a study without a run keeps the entry that the page
has. Ends with 1 where a study is missing.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import loadframe
from loadframe.errors import MissingTool
from loadframe.model import Investigation, Ladder
from loadframe.reporting import answers, facts, ladder_report, reports, vega, words
from loadframe.reporting.next_step import next_step
from loadframe.reporting.reports import titled
from loadframe.study import Study

DOCS = Path(__file__).resolve().parents[1] / "docs"
PICTURES = DOCS / "images" / "gallery"
HEAD = """# Gallery

What stands first in the report of each case: the question, the answer, and the next step. Written by
`python benchmarks/gallery.py` from runs of the quick profiles (`loadframe case run NAME --quick`), each on a small
machine; intervals are 95 % intervals. README's table is of other runs, so its numbers differ. A run of your own writes
the whole page, `report.html` in its run folder.
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """A study of a case, and what its run came to."""

    case: str
    study: str
    found: Investigation | Ladder


def entries(runs: Path, names: list[str], measured: bool) -> Iterator[tuple[str, str, Entry | None]]:
    """Each study that a run of a case carries out, with its latest run; None where there is none. names: the cases to
    run first; measured: whether all are."""
    for case in loadframe.cases():
        for which in case.main:
            study = case.study(profile="quick", which=which)
            try:
                if measured or case.name in names:
                    (loadframe.ladder if case.verb == "ladder" else loadframe.investigate)(study, runs)
            except MissingTool as error:
                print(f"{case.name} ({which}): {error.fact}")
            found = latest(runs, study)
            yield case.name, which, None if found is None else Entry(case.name, which, found)


def latest(runs: Path, study: Study) -> Investigation | Ladder | None:
    """The latest run of this study that came to an end; another study of the same name has another axis."""
    for path in sorted(runs.glob(f"*-{study.study.name}"), reverse=True):
        if not any((path / name).exists() for name in ("investigation.json", "ladder.json")):
            continue
        run = loadframe.open_run(path)
        if run.declared().load.axis == study.load.axis:
            found = loadframe.conclude(run).answer
            return found if isinstance(found, Investigation | Ladder) else None
    return None


def told(entry: Entry) -> str:
    """One entry of the page."""
    found, picture = entry.found, f"images/gallery/{entry.case}-{entry.study}.svg"
    if isinstance(found, Ladder):
        answer, chart, after = ladder_report.answer(found), reports.page_charts(found).get("waterfall"), ""
    else:
        answer, chart = answers.answer(found), reports.page_charts(found).get("proof")
        given_up = words.sentence("; ".join(facts.gives_up(found)))
        after = f"\n**Given up for it.** {given_up}\n" if given_up else ""
        step = next_step(found)
        after += f"\n**Next.** {step.action}{f' Why: {step.why}' if step.why else ''}\n"
    drawn = ""
    if chart is not None:
        PICTURES.mkdir(parents=True, exist_ok=True)
        svg = vega.render(titled(json.loads(chart.spec)), chart.name, chart.alt)
        (DOCS / picture).write_text(svg, encoding="utf-8")
        drawn = f"\n![{words.sentence(chart.title)}]({picture})\n"
    return f"\n## {entry.case}: {found.study.question}\n\n{words.sentence(answer)}\n{drawn}{after}"


def on_the_page() -> dict[str, str]:
    """The entries that the page has, by their headings."""
    blocks = (DOCS / "gallery.md").read_text(encoding="utf-8").split("\n## ")[1:]
    return {block.partition("\n")[0]: f"\n## {block}" for block in (each.rstrip("\n") + "\n" for each in blocks)}


def main() -> int:
    """Write the gallery."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--from", dest="runs", type=Path)
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="loadframe-gallery-") as folder:
        runs = given.runs or Path(folder)
        text, missing, old = HEAD, 0, on_the_page() if given.keep else {}
        for case, which, entry in entries(runs, given.cases, given.runs is None):
            heading = f"{case}: {loadframe.case(case).study(profile='quick', which=which).study.question}"
            if entry is None and heading in old:
                text += old[heading]
                print(f"{case} ({which}): kept")
                continue
            if entry is None:
                missing += 1
                print(f"{case} ({which}): no run in {runs}; loadframe case run {case} --quick --runs {runs}")
                continue
            text += told(entry)
            print(f"{case} ({which}): {entry.found.run}")
    (DOCS / "gallery.md").write_text(text, encoding="utf-8")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
