"""A schema of our own on a server that Loadframe did not start. Its mark is a table whose name is drawn for the run and
written into the journal before the schema is made: a schema without such a table is not ours, whatever its name."""

import secrets
from dataclasses import replace

from loadframe.errors import TargetError
from loadframe.model import Endpoint

MARK = "mark"
"""The endpoint's option with the name of that table."""


def new_mark() -> str:
    return f"loadframe_run_{secrets.token_hex(8)}"


def marked(endpoint: Endpoint, mark: str) -> Endpoint:
    """The same server with this mark."""
    return replace(endpoint, options={**endpoint.options, MARK: mark})


def mark_of(endpoint: Endpoint) -> str:
    """The table that marks the schema on this server as ours; "" if the whole server is ours."""
    return endpoint.options[MARK] if endpoint.attached else ""


def refusal(where: str, schema: str, drop: str) -> TargetError:
    """The error that the server has a schema of this name already. drop: the statement that would remove it."""
    return TargetError(
        f"The server at {where} has a schema {schema!r} already that this run has not made, and Loadframe makes its "
        "own.",
        remedy="It is left as it is. See `loadframe changes list`: where a killed run has left it, `loadframe changes "
        f"revert` drops it. Else rename it, or if it is not needed: {drop};",
    )
