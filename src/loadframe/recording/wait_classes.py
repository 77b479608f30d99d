"""What a sleeping thread waits for, by its system call, or else by the kernel function that it sleeps in
(docs/recording.md, "What threads wait for")."""

import re
import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

WaitClass = Literal["running", "runnable", "disk", "network", "idle", "socket", "futex", "sleeping", "other", "unknown"]
CLASSES: tuple[WaitClass, ...] = get_args(WaitClass)
By = Literal["reads", "writes", "receives", "sends", "polls"]
"""How the descriptors decide: one that is read from or written to, which may be no socket; a socket; or several."""
Role = Literal["listening", "served", "peer", "datagrams", "none"]
"""Accepted connections are served, connections made lead to a peer; "none" is no socket."""

_FUNCTIONS: tuple[tuple[str, WaitClass, str], ...] = (
    (r"_*futex_.*", "futex", "kernel/futex/waitwake.c"),
    (r".*nanosleep|(m|u|.*_)sleep", "sleeping", "kernel/time/hrtimer.c, timer.c"),
    (r"(do_)?ep(oll)?_(poll|wait).*", "idle", "fs/eventpoll.c"),
    (r".*accept.*|__skb_wait_for_more_packets_accept", "idle", "net/ipv4/inet_connection_sock.c, net/unix/af_unix.c"),
    (r"io_cqring_wait.*", "idle", "io_uring/io_uring.c"),
    (r"poll_schedule_timeout.*|do_(sys_)?poll.*|do_select|core_sys_select", "socket", "fs/select.c"),
    (
        r"sk_wait_data|wait_woken|tcp_(recv|send)msg.*|sk_stream_wait_.*|inet_(stream|wait_for)_connect.*"
        r"|unix_stream_(read|data_wait).*|__skb_wait_for_more_packets|sock_alloc_send_pskb",
        "socket",
        "net/core/sock.c, net/core/stream.c, net/unix/af_unix.c",
    ),
)
"""Kernel function as in /proc/PID/wchan | class | where it is."""
_PATTERNS = tuple((re.compile(pattern), wait) for pattern, wait, _ in _FUNCTIONS)
_SUFFIX = re.compile(r"\.(isra|constprop|part|cold)\.?\d*")

POLL_CALLS, SELECT_CALLS = ("poll", "ppoll"), ("select", "pselect6")
MOST_POLLED, MOST_SELECTED, POLLED_BYTES = 16, 1024, 8
"""The most descriptors of one poll(2) that are read: with more it is an event loop's; the most that select(2) takes
(FD_SETSIZE); the size of a struct pollfd."""


@dataclass(frozen=True, slots=True)
class Call:
    """number: on the machine of its table. wait: None if `by` decides."""

    name: str
    number: int
    wait: WaitClass | None
    by: By


_BY_DESCRIPTOR: Mapping[str, By] = {name: name for name in get_args(By)}
_BY_ITSELF: Mapping[str, WaitClass] = {name: name for name in CLASSES}


def _table(column: int) -> dict[int, Call]:
    calls = {}
    for row in Path(__file__).with_name("system_calls.txt").read_text(encoding="utf-8", errors="strict").splitlines():
        name, kind, *numbers, _ = (cell.strip() for cell in row.split("|"))
        if numbers[column].isdigit():
            number = int(numbers[column])
            calls[number] = Call(name, number, _BY_ITSELF.get(kind), _BY_DESCRIPTOR.get(kind, "polls"))
    return calls


_X86_64, _GENERIC = _table(0), _table(1)
CALLS: Mapping[str, Mapping[int, Call]] = {"x86_64": _X86_64, "aarch64": _GENERIC, "riscv64": _GENERIC}
"""By the machine's name in uname(2), and by number."""


def by_function(wchan: str) -> WaitClass:
    name = _SUFFIX.sub("", wchan)
    if name in ("", "0"):
        return "unknown"
    return next((wait for pattern, wait in _PATTERNS if pattern.fullmatch(name)), "other")


def by_descriptors(by: By, roles: Collection[Role] | None) -> WaitClass:
    """roles: of the descriptors of a system call; None: unknown."""
    if roles is None:
        return "unknown" if by in ("reads", "writes") else "socket"
    sockets = {*roles} - {"none"}
    if not sockets:
        return "other" if by in ("reads", "writes") else "socket"
    return "idle" if by in ("reads", "receives", "polls") and sockets & {"listening", "served"} else "network"


def descriptors_of(call: Call, arguments: Sequence[int], polled: bytes) -> list[int]:
    """arguments: as in /proc/PID/syscall; polled: what the recorder read from the process's memory."""
    if call.name in POLL_CALLS:
        whole = polled[: len(polled) // POLLED_BYTES * POLLED_BYTES]
        return [number for (number,) in struct.iter_unpack("<i4x", whole) if number >= 0]
    if call.name in SELECT_CALLS:
        bits = int.from_bytes(polled, "little")
        return [number for number in range(bits.bit_length()) if bits >> number & 1]
    return [*arguments[:1]]
