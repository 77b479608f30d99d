"""The configuration as the management server gives it to the nodes, defaults included: `--print-full-config`."""

import re

from loadframe.formats.plain_numbers import whole
from loadframe.kinds.ndb.own_settings import own_name, setting_of
from loadframe.model import SettingValue

HEADING = re.compile(r"\[(\w+)(?:\((\w+)\))?\]")


def read_full_config(text: str) -> dict[str, SettingValue]:
    """By the names of own_settings, in canonical form. Of several nodes or connections the first one counts: settings
    that one node has for itself are not told."""
    found: dict[str, SettingValue] = {}
    section = ""
    for line in text.splitlines():
        if (heading := HEADING.fullmatch(line)) is not None:
            section = heading[1].lower()
            continue
        name, equals, value = line.partition("=")
        if equals and (known := own_name(section, name)) is not None:
            found.setdefault(known, canonical(known, value))
    return found


def canonical(name: str, text: str) -> SettingValue:
    """The value of a setting; a default of the program may be one that the manual's bounds do not have."""
    try:
        return setting_of(name).read(text)
    except ValueError:
        number = whole(text)
        return text if number is None else number
