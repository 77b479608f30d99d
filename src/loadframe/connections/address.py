"""Where a server is: only here does a name become numeric addresses, and the one that was checked is the one that
connections and drivers use. The check for consent looks a name up again; connections use its result."""

import ipaddress
import re
import socket
from dataclasses import dataclass
from typing import Any

from loadframe.errors import StudyError
from loadframe.formats.plain_numbers import whole
from loadframe.formats.said import words

NAME = re.compile(r"[A-Za-z0-9_.:-]+(%[A-Za-z0-9_.-]+)?")
TRIED_FOR_S = 5.0
resolved: dict[str, tuple[str, ...]] = {}
"""What this command has resolved: name -> its numbers."""
chosen: dict[tuple[str, int], str] = {}
"""Name and port -> the number to connect to."""


@dataclass(frozen=True, slots=True)
class Place:
    """host: as named, for certificates and the header Host. number: the numeric address. here: on this machine."""

    host: str
    number: str
    port: int
    here: bool


def look_up(host: str, *, afresh: bool = False) -> tuple[str, ...]:
    """Every numeric address of a name, in the order in which to try them. StudyError where there is none."""
    if afresh:
        resolved.pop(host, None)
    if host not in resolved:
        resolved[host] = _asked(host)
    return resolved[host]


def is_here(host: str, *, afresh: bool = False) -> bool:
    """Whether every address of this name is one of this machine. StudyError as `look_up`."""
    return all(_is_own(number) for number in look_up(host, afresh=afresh))


def decide(host: str, port: int, number: str = "") -> Place:
    """The first address that accepts a connection, else the first. number: decided before."""
    if number:
        return Place(host, number, port, is_here(number))
    numbers = look_up(host)
    if chosen.get((host, port)) not in numbers:
        tried = numbers if len(numbers) > 1 else ()  # where none accepts, whoever connects reports that
        accepting = (number for number in tried if accepts(number, port, TRIED_FOR_S))
        chosen[host, port] = next(accepting, numbers[0])
    number = chosen[host, port]
    return Place(host, number, port, _is_own(number))


def _asked(host: str) -> tuple[str, ...]:
    if NAME.fullmatch(host) is None:
        raise StudyError(
            f"{host!r} is not the name of one host",
            remedy="Write one name or address, without blanks or commas; a name in other letters as xn--...",
        )
    try:
        entries = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # the latter for an empty or too long part, "a..b"
        raise StudyError(f"{host} has no address: {error}", remedy="Correct the name.") from error
    numbers = tuple(dict.fromkeys(_number(entry[4]) for entry in entries))
    if any(ipaddress.ip_address(number.partition("%")[0]).is_unspecified for number in numbers):
        raise StudyError(f"{host} is every address and none", remedy="Write 127.0.0.1 for this machine.")
    return numbers


def _number(socket_address: tuple[Any, ...]) -> str:
    """With its interface where it needs one; ::ffff:192.0.2.1 as IPv4."""
    number, _, scope = str(socket_address[0]).partition("%")
    address = ipaddress.ip_address(number)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    if len(socket_address) == 4 and socket_address[3] and not scope:
        scope = socket.if_indextoname(socket_address[3])
    return f"{number}%{scope}" if scope else number


def accepts(host: str, port: int, within_s: float = 1.0) -> bool:
    try:
        socket.create_connection((host, port), timeout=within_s).close()
    except OSError:
        return False
    return True


def _is_own(number: str) -> bool:
    """What is sent to an address of this machine comes from there."""
    if ipaddress.ip_address(number.partition("%")[0]).is_loopback:
        return True
    family = socket.AF_INET6 if ":" in number else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((number, 9))  # nothing is sent
        except OSError:
            return False
        return bool(probe.getsockname()[0] == number.partition("%")[0])


def parted(address: str, port: str) -> tuple[str, str]:
    """The host and port of HOST, HOST:PORT, [ADDRESS]:PORT or an IPv6 address; port: the default. StudyError for
    others."""
    if address.startswith("["):
        host, closed, named = address[1:].partition("]:")
        host, named = (host, named) if closed else (host.removesuffix("]"), port)
    elif address.count(":") == 1:
        host, _, named = address.partition(":")
    else:
        host, named = address, port
    if not 0 < (whole(named) or 0) < 65536:
        raise StudyError(
            f"{words(repr(address))} has no port that could be meant: {words(repr(named))}", remedy="Write HOST:PORT."
        )
    return host, named


def joined(host: str, port: str | int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
