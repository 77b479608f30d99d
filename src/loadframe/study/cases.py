"""The cases: folders with a case.toml, a README with the story, and studies. case.toml has a [case] table (title,
story, main: the study's file name, or several to carry out in order, needs, and verb, default "investigate") and a
table for each profile ("quick", "full", "quick-fleet") with the study keys that it replaces."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from loadframe.errors import StudyError
from loadframe.formats.said import did_you_mean
from loadframe.study.declaration import Study
from loadframe.study.reading import apply_overrides, merge, quoted, read_tables, read_text, validate

FOLDER = Path(__file__).resolve().parent.parent / "cases"
Verb = Literal["investigate", "ladder"]
KNOWN_ANSWER = "expected"
PROFILES = ("quick", "default", "full")


@dataclass(frozen=True, slots=True)
class Case:
    """needs: in words. studies: by name; main: those that a run carries out; verb: how."""

    name: str
    title: str
    story: str
    needs: str
    folder: Path
    studies: Mapping[str, Path]
    profiles: Mapping[str, Mapping[str, Any]]
    main: tuple[str, ...] = ()
    verb: Verb = "investigate"

    def readme(self) -> str:
        return read_text(self.folder / "README.md")

    def study(
        self,
        *,
        profile: str = "default",
        which: str | None = None,
        overrides: Iterable[str] = (),
        over_fleet: bool = False,
    ) -> Study:
        """The main study, or `which`. StudyError for an unknown one."""
        name = which or next(iter(self.studies))
        if (path := self.studies.get(name)) is None:
            raise StudyError(
                f"the case {self.name} has no study {name!r}", remedy=f"It has: {', '.join(self.studies)}."
            )
        text = read_text(path)
        tables = read_tables(text, path.name)
        changes: dict[str, Any] = {}
        if profile != "default":
            for used in (profile, *((f"{profile}-fleet",) if over_fleet else ())):
                changes |= self.profiles.get(used, {}).get(name, {})
        merge(tables, changes)
        overridden = apply_overrides(tables, overrides)
        return validate(tables, text=text, name=path.name, overridden={*overridden, *changes})


def all_cases() -> list[Case]:
    return [_read(path.parent) for path in sorted(FOLDER.glob("*/case.toml"))]


def find(name: str, folder: Path = FOLDER) -> Case:
    known = sorted(path.parent.name for path in folder.glob("*/case.toml"))
    if name not in known:
        remedy = f"{did_you_mean(name, known)}`loadframe case list` shows: {', '.join(known)}."
        raise StudyError(f"there is no case {quoted(name)}", remedy=remedy)
    return _read(folder / name)


def _read(folder: Path) -> Case:
    tables = read_tables(read_text(folder / "case.toml"), "case.toml")
    about = tables.pop("case")
    main = (about["main"],) if isinstance(about["main"], str) else tuple(about["main"])
    others = sorted(path.stem for path in folder.glob("*.toml") if path.stem not in ("case", KNOWN_ANSWER, *main))
    return Case(
        name=folder.name,
        title=about["title"],
        story=about["story"],
        needs=about["needs"],
        folder=folder,
        studies={stem: folder / f"{stem}.toml" for stem in [*main, *others]},
        profiles=tables,
        main=main,
        verb=about.get("verb", "investigate"),
    )
