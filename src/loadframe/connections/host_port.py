"""HOST:PORT as it is written, also where the host is an address with colons of its own."""

from loadframe.errors import StudyError
from loadframe.formats.plain_numbers import whole
from loadframe.formats.said import words


def parted(address: str, port: str) -> tuple[str, str]:
    """Of HOST, HOST:PORT, [ADDRESS]:PORT or an IPv6 address; port: where it names none. StudyError for others."""
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
    """So that `parted` gives both again."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
