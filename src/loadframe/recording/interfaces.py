"""The traffic of each network interface, as /proc/net/dev counts it: with the headers of every frame."""

from collections.abc import Sequence
from dataclasses import dataclass

from loadframe.recording import procfs
from loadframe.recording.frames import Tick

SOURCE = "system:/proc/net/dev"
FIELDS = 16
"""Eight of what was received, then eight of what was sent (net/core/net-procfs.c)."""


@dataclass(frozen=True, slots=True)
class InterfaceCounts:
    """Bytes and packets since the interface exists."""

    received_bytes: int
    received_packets: int
    sent_bytes: int
    sent_packets: int


@dataclass(frozen=True, slots=True)
class Carried:
    """The same between two instants (CLOCK_MONOTONIC of that machine)."""

    from_s: float
    to_s: float
    received_bytes: int
    received_packets: int
    sent_bytes: int
    sent_packets: int


def parse_interfaces(text: bytes) -> dict[str, InterfaceCounts]:
    """By name. Raises RecordingError for an invalid count."""
    interfaces = {}
    for line in text.splitlines():
        name, colon, rest = line.partition(b":")
        fields = rest.split()
        if colon and len(fields) >= FIELDS:
            counts = [procfs.parse_count(fields[place]) for place in (0, 1, 8, 9)]
            interfaces[name.strip().decode("utf-8", "replace")] = InterfaceCounts(*counts)
    return interfaces


def carried(ticks: Sequence[Tick], name: str, start_s: float, end_s: float) -> Carried | None:
    """Between the outer readings within start_s..end_s; None without two, without the interface, or after a reset."""
    inside = [tick for tick in ticks if start_s <= tick.monotonic_s <= end_s and SOURCE in tick.entries]
    if len(inside) < 2:
        return None
    first, last = (parse_interfaces(tick.entries[SOURCE]).get(name) for tick in (inside[0], inside[-1]))
    if first is None or last is None:
        return None
    fields = InterfaceCounts.__dataclass_fields__
    grown = {field: getattr(last, field) - getattr(first, field) for field in fields}
    if min(grown.values()) < 0:
        return None
    return Carried(inside[0].monotonic_s, inside[-1].monotonic_s, **grown)
