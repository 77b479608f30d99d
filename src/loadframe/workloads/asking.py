"""A web server asked by ourselves, outside the load: what it answers is learnt, and whether it answers at all."""

from collections.abc import Sequence
from dataclasses import dataclass

from loadframe.connections.http_connection import ERRORS, Connection, body
from loadframe.errors import TargetError
from loadframe.formats.said import words
from loadframe.model import Endpoint

TIMEOUT_S = 10.0
"""Without a byte."""
WHOLE_S = 60.0
"""No answer takes longer from its first byte to its last, or it has no end."""
LARGEST_OBJECT = 256 << 20
HEADERS_BYTES = 1 << 20
"""Of one answer, and what stands around its chunks."""


@dataclass(frozen=True, slots=True)
class Answer:
    """status; body; the headers, in the order in which they came."""

    status: int
    body: bytes
    headers: Sequence[tuple[str, str]] = ()


def host_of(endpoint: Endpoint) -> str:
    """What stands in the header Host: the name of a server that is known by one."""
    return endpoint.options.get("host", endpoint.address)


def ask(
    endpoint: Endpoint,
    path: str,
    method: str = "GET",
    headers: Sequence[tuple[str, str]] = (),
    content: bytes = b"",
) -> Answer:
    """One request on a connection of its own. TargetError where no answer comes to its end within WHOLE_S."""
    connection = Connection(
        endpoint.address,
        host=host_of(endpoint),
        most_bytes=LARGEST_OBJECT + HEADERS_BYTES,
        within_s=WHOLE_S,
        silent_s=TIMEOUT_S,
    )
    try:
        answer = connection.send_as(method, path, headers, content)
        return Answer(answer.status, body(answer), answer.getheaders())
    except ERRORS as error:
        raise TargetError(
            f"The server at {endpoint.address} does not answer {path}: {words(error) or type(error).__name__}",
            remedy="Check that it runs and listens there; its log says why it would not.",
        ) from error
    finally:
        connection.close()
