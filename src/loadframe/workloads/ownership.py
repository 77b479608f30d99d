"""A schema of our own on a server that Loadframe did not start. It is known by a table in it, whose name is drawn for
the run and in the journal before the schema is made: what has no such table is not ours, whatever it is called."""

import secrets
from dataclasses import replace

from loadframe.errors import TargetError
from loadframe.model import Endpoint

MARK = "mark"
"""The option of an endpoint with the name of that table."""


def new_mark() -> str:
    """A name that no table has."""
    return f"loadframe_run_{secrets.token_hex(8)}"


def marked(endpoint: Endpoint, mark: str) -> Endpoint:
    """The same server with this mark."""
    return replace(endpoint, options={**endpoint.options, MARK: mark})


def mark_of(endpoint: Endpoint) -> str:
    """The table by which the schema on this server is known as ours; "" where the whole server is ours."""
    return endpoint.options[MARK] if endpoint.attached else ""


def refusal(where: str, schema: str, drop: str) -> TargetError:
    """That the server has a schema of this name. drop: the statement that would remove it."""
    return TargetError(
        f"The server at {where} has a schema {schema!r} already that this run has not made, and Loadframe makes its "
        "own.",
        remedy="It is left as it is. See `loadframe changes list`: where a killed run has left it, `loadframe changes "
        f"revert` drops it. Else rename it, or if it is not needed: {drop};",
    )
