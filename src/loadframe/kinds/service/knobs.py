"""A declared setting as what may be tried with it."""

from __future__ import annotations

from loadframe.model import Knob
from loadframe.study.service_tables import SettingTable


def knob_of(name: str, table: SettingTable, limit: str = "") -> Knob:
    """Of one table [target.setting.NAME]. limit: the id of the [[target.limit]] that names it."""
    raises = limit or table.raises
    return Knob(name, tuple(table.values), table.low, table.high, raises=raises, gives_up=table.gives_up or None)
