"""Through which interface a host reaches an address, and in which network it is. Linux, IPv4."""

from __future__ import annotations

import ipaddress
import struct
from pathlib import Path
from typing import Any

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


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
