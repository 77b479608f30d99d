"""The options of a workload: a frozen dataclass, whose fields (`whole`, `choice`, …) carry range and purpose."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from loadframe.errors import StudyError
from loadframe.formats.named_files import read_up_to
from loadframe.formats.said import did_you_mean
from loadframe.model import SettingValue

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Model = TypeVar("Model", bound=DataclassInstance)


@dataclass(frozen=True)
class OptionRule:
    what: str
    right: str
    accepts: Callable[[SettingValue], bool]


def _option(default: SettingValue, what: str, right: str, accepts: Callable[[SettingValue], bool]) -> Any:
    return dataclasses.field(default=default, metadata={"rule": OptionRule(what, right, accepts)})


def whole(default: int, low: int, high: int, what: str) -> Any:
    return _option(default, what, f"a whole number from {low} to {high}", lambda value: _within(value, int, low, high))


def number(default: float, low: float, high: float, what: str) -> Any:
    right = f"a number from {low:g} to {high:g}"
    return _option(default, what, right, lambda value: _within(value, int | float, low, high))


def _within(value: Any, kind: Any, low: float, high: float) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool) and low <= value <= high


def switch(default: bool, what: str) -> Any:
    return _option(default, what, "true or false", lambda value: isinstance(value, bool))


def choice(default: str, values: Sequence[str], what: str) -> Any:
    return _option(default, what, "one of " + ", ".join(values), lambda value: value in values)


def text(default: str, what: str) -> Any:
    return _option(default, what, "text in one line", lambda value: isinstance(value, str) and "\n" not in value)


def readable(what: str) -> Any:
    """The path of a file that we can read; "", the default, for none."""

    def accepts(value: SettingValue) -> bool:
        return value == "" or (isinstance(value, str) and file_at(value) is not None)

    return _option("", what, "the path of a file that can be read; a relative one begins where you are", accepts)


def file_at(name: str) -> Path | None:
    """The absolute path of a file that we can read; None for any other name."""
    try:
        path = Path(name).expanduser().absolute()
        return path if path.is_file() and os.access(path, os.R_OK) else None
    except (OSError, RuntimeError, ValueError):  # too long, a ~name that no user has, a NUL
        return None


def content_of(name: str, most: int, what: str) -> bytes:
    """StudyError if it cannot be read, or has more than `most` bytes."""
    remedy = "Give the path of a file that can be read."
    try:
        content = read_up_to(Path(name).expanduser().absolute(), most)
    except (OSError, RuntimeError) as error:  # the latter for a ~name that has no home
        why = getattr(error, "strerror", None) or error
        raise StudyError(f"{what} cannot be read from {name!r}: {str(why).rstrip('.')}.", remedy=remedy) from error
    if len(content) > most:
        raise StudyError(f"{what} has more than {most:,} bytes ({name!r}).", remedy="Give a smaller one.")
    return content


def mix_of(options: object, operations: Sequence[str]) -> dict[str, int]:
    """From the options of the same names. StudyError if all are 0."""
    weights = {name: getattr(options, name) for name in operations}
    if not any(weights.values()):
        raise StudyError(
            f"All weights of the mix ({', '.join(operations)}) are 0: there is nothing to do.",
            remedy="Give at least one of them in [workload.options] a weight above 0.",
        )
    return weights


def rules(model: type[DataclassInstance]) -> dict[str, tuple[OptionRule, SettingValue]]:
    return {field.name: (field.metadata["rule"], getattr(model, field.name)) for field in dataclasses.fields(model)}


def read_options(model: type[Model], kind: str, options: Mapping[str, SettingValue]) -> Model:
    """With defaults. StudyError for an unknown option or a value out of range."""
    known = rules(model)
    for name, value in options.items():
        if name not in known:
            close = did_you_mean(name, list(known))
            raise StudyError(
                f"The workload {kind} has no option {name!r} (value {value!r}).",
                remedy=f"{close}Its options are: {', '.join(known)}.",
            )
        rule, default = known[name]
        if not rule.accepts(value):
            raise StudyError(
                f"workload.options.{name} = {value!r} does not suit the workload {kind}.",
                remedy=f"It must be {rule.right}: {rule.what}. The default is {default!r}.",
            )
    return model(**options)


def whole_level(kind: str, axis: str, level: float, low: int, high: int) -> int:
    """StudyError if it is not a whole number from low to high."""
    if level != level or level in (float("inf"), float("-inf")) or level != int(level) or not low <= level <= high:
        raise StudyError(
            f"The level {level:g} on the axis {axis} is impossible for the workload {kind}.",
            remedy=f"Levels of {axis} must be whole numbers from {low} to {high}; change [load] levels.",
        )
    return int(level)
