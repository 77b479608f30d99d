"""A declared setting as what may be tried with it."""

from loadframe.model import Knob, SettingValue
from loadframe.study.service_tables import SettingTable


def knob_of(name: str, table: SettingTable, limit: str = "") -> Knob:
    """Of one table [target.setting.NAME]. limit: the id of the [[target.limit]] that names it."""
    values = tuple(table.values)
    if any(isinstance(value, str) for value in values) or len({isinstance(value, bool) for value in values}) > 1:
        values = tuple(map(shown, values))  # a number or a switch beside words ("auto", 4): as the service is given it
    return Knob(name, values, table.low, table.high, raises=limit or table.raises, gives_up=table.gives_up or None)


def shown(value: SettingValue) -> str:
    """A value as the service is given it."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
