"""The files of control groups, of version 1 and 2."""

from __future__ import annotations

import math

from loadframe.recording.procfs.machine import parse_vmstat
from loadframe.recording.procfs.words import integer, text_of


def parse_flat_keyed(data: bytes) -> dict[str, int]:
    """cpu.stat, memory.stat, memory.events and their like: name -> number."""
    return parse_vmstat(data)


def parse_cgroup_io(data: bytes) -> dict[str, dict[str, float]]:
    """By device ("8:0"). io.stat and io.max (version 2): rbytes, wbytes, rios, wios; rbps, wbps, riops, wiops, infinite
    where there is no limit. blkio.throttle.io_service_bytes and io_serviced (version 1): Read and Write; its limits,
    blkio.throttle.*_device: "". Empty where there was no I/O, or is no limit."""
    devices: dict[str, dict[str, float]] = {}
    for line in data.splitlines():
        device, *fields = line.split() or [b""]
        pairs = [field.split(b"=", 1) for field in fields if b"=" in field]
        if len(fields) == 2 and fields[0] in (b"Read", b"Write"):
            pairs.append(fields)
        elif len(fields) == 1 and not pairs and b":" in device:
            pairs.append([b"", *fields])
        numbers = {text_of(key): parse_maximum(value) for key, value in pairs}
        if numbers:
            devices.setdefault(text_of(device), {}).update(numbers)
    return devices


def parse_maximum(data: bytes) -> float:
    """memory.max and its like: a number, or "max"."""
    return math.inf if data.strip() == b"max" else float(integer(data.strip(), "a cgroup's limit"))
