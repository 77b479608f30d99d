"""The settings of a service, as data: exactly those that its study declares."""

from collections.abc import Iterable

from loadframe.kinds.catalogue import Catalogue, Kind, SettingSpec, Tunable
from loadframe.model import Knob

KIND = "service"
SOURCE = "a service has the settings that its study declares: [target.setting.NAME]"
CATALOGUE = Catalogue(kind=KIND, source=SOURCE, specs=())
"""Of a service of which nothing is declared."""


def spec(knob: Knob, *, dynamic: bool) -> SettingSpec:
    """A declared setting as a catalogue has it. dynamic: the running service accepts another value."""
    kind = kind_of(knob)
    words = tuple(value for value in knob.values if isinstance(value, str | int) and not isinstance(value, bool))
    listed = kind in ("integer", "text") and len(words) == len(knob.values)
    numbers = [float(value) for value in knob.values if kind == "number"]
    return SettingSpec(
        knob.name,
        kind,
        dynamic,
        low=min(numbers) if numbers else knob.low,
        high=max(numbers) if numbers else knob.high,
        choices=words if listed else (),
        gives_up=knob.gives_up,
        safe=knob.values[:1],
        source=f"target.setting.{knob.name}",
    )


def kind_of(knob: Knob) -> Kind:
    """The kind of its values; of a mixture, text."""
    values = knob.values or (knob.low or 0, knob.high or 0)
    for kind, form in _FORMS:
        if all(isinstance(value, form) and isinstance(value, bool) == (form is bool) for value in values):
            return kind
    return "text"


_FORMS: tuple[tuple[Kind, type | tuple[type, ...]], ...] = (
    ("boolean", bool),
    ("integer", int),
    ("number", (int, float)),
)


def tunable(knob: Knob) -> Tunable:
    if not knob.values:
        return Tunable(knob.name, low=knob.low or 0.0, high=knob.high)
    if knob.gives_up is None:
        return Tunable(knob.name, knob.values)
    return Tunable(knob.name, knob.values[:1], relaxed=knob.values[1:])


def catalogue(knobs: Iterable[tuple[Knob, bool]]) -> Catalogue:
    """The catalogue of the declared settings, each with whether it is dynamic."""
    return Catalogue(kind=KIND, source=SOURCE, specs=tuple(spec(knob, dynamic=dynamic) for knob, dynamic in knobs))
