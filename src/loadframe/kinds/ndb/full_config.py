"""The configuration as the management server gives it to the nodes, defaults included: `--print-full-config`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from loadframe.formats.plain_numbers import whole
from loadframe.kinds.ndb.own_settings import PREFIXES, setting_or_none
from loadframe.kinds.ndb.setting import Setting
from loadframe.model import SettingValue

HEADING = re.compile(r"\[(\w+)(?:\((\w+)\))?\]")
SECTIONS: Mapping[str, str] = {"ndbd": "ndbd", "mysqld": "mysqld", "TCP": "tcp"}


def read_full_config(text: str) -> dict[str, SettingValue]:
    """By the names of own_settings, in canonical form. Of several nodes or connections the first one counts: settings
    that one node has for itself are not told."""
    found: dict[str, SettingValue] = {}
    section = ""
    for line in text.splitlines():
        if (heading := HEADING.fullmatch(line)) is not None:
            section = SECTIONS.get(heading[1], "")
            continue
        name, equals, value = line.partition("=")
        setting = setting_or_none(f"{PREFIXES[section]}{name}") if section and equals else None
        if setting is not None:
            found.setdefault(f"{PREFIXES[section]}{setting.name}", canonical(setting, value))
    return found


def canonical(setting: Setting, text: str) -> SettingValue:
    """A default of the program may be one that the manual's bounds do not have."""
    try:
        return setting.read(text)
    except ValueError:
        number = whole(text)
        return text if number is None else number
