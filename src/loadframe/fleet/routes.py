"""Through which interface a host reaches an address, and in which network it is (Linux, IPv4); at which number it
listens for others."""

from __future__ import annotations

import ipaddress
import struct
from pathlib import Path
from typing import Any

from loadframe.connections.address import look_up
from loadframe.errors import StudyError

LOOPBACK = "lo"
UP = 0x1
"""RTF_UP of include/uapi/linux/route.h."""


def interface_to(address: str, root: Path = Path("/")) -> str:
    """Of the route that fits best; of an address of the host itself that of its network. "" where none is known, as
    for IPv6."""
    number = ipaddress.ip_address(address)
    if number.is_loopback:
        return LOOPBACK
    if number.version != 4:
        return ""
    best = (-1, 0, "")
    for line in _lines(root / "proc/net/route")[1:]:
        fields = line.split()
        if len(fields) < 8 or not int(fields[3], 16) & UP:
            continue
        destination, mask = (int.from_bytes(struct.pack("=I", int(each, 16)), "big") for each in (fields[1], fields[7]))
        if int(number) & mask == destination:
            best = max(best, (mask.bit_count(), -int(fields[6]), fields[0]))
    return best[2]


def route(address: str) -> dict[str, Any]:
    """interface: see above. network: of which namespace it is; "" where that cannot be told."""
    try:
        network = str(Path("/proc/self/ns/net").readlink())
    except OSError:
        network = ""
    return {"interface": interface_to(address), "network": network}


def listening_number(address: str) -> str:
    """The one at which this host is to listen. StudyError where the address is several, or none that others reach."""
    number, *others = look_up(address)
    if others:
        raise StudyError(
            f"the address {address} is {len(others) + 1} numbers: {', '.join((number, *others))}",
            remedy="Write the one on which the target is to listen as the address of its host in the fleet file.",
        )
    check_is_reached(address)
    return number


def check_is_reached(address: str) -> None:
    """StudyError for a name that is of the loopback here, as the own name of a machine often is in its /etc/hosts, or
    stands for all addresses."""
    for number in look_up(address):
        found = ipaddress.ip_address(number.partition("%")[0])
        if address in (number, "localhost") or not (found.is_loopback or found.is_unspecified):
            continue
        what = ": every address of it" if found.is_unspecified else ", where no other one reaches it"
        raise StudyError(
            f"the address {address} is {number} on that host itself{what}",
            remedy="Write the number by which drivers reach it as the address of its host in the fleet file.",
        )


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
