"""A declared setting as what may be tried with it."""

from __future__ import annotations

from loadframe.model import Knob, SettingValue
from loadframe.study.service_tables import SettingTable


def knob_of(name: str, table: SettingTable, limit: str = "") -> Knob:
    """Of one table [target.setting.NAME]. limit: the id of the [[target.limit]] that names it."""
    raises = limit or table.raises
    return Knob(
        name, _alike(tuple(table.values)), table.low, table.high, raises=raises, gives_up=table.gives_up or None
    )


def _alike(values: tuple[SettingValue, ...]) -> tuple[SettingValue, ...]:
    """The values of one kind: where a number or a switch stands beside words ("auto", 4), each as the service is given
    it, in words."""
    words = any(isinstance(value, str) for value in values) or len({isinstance(value, bool) for value in values}) > 1
    return tuple(shown(value) for value in values) if words else values


def shown(value: SettingValue) -> str:
    """A value as the service is given it."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
