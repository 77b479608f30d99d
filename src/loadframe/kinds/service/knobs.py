"""A declared setting as what may be tried with it."""

from __future__ import annotations

from loadframe.model import Knob
from loadframe.study.service_tables import SettingTable


def knob_of(name: str, table: SettingTable) -> Knob:
    """Of one table [target.setting.NAME]."""
    return Knob(name, tuple(table.values), table.low, table.high, raises=table.raises, gives_up=table.gives_up or None)
