"""Options that say which series of a file of monitoring is what, for the verbs that read such files."""

from __future__ import annotations

from typing import Annotated

import typer

from loadframe.errors import UsageError
from loadframe.formats.said import words
from loadframe.model import ObservedMapping

LoadOf = Annotated[
    str | None,
    typer.Option("--load", metavar="SERIES", help="For production data: which column or series is the load."),
]
ThroughputOf = Annotated[
    str | None,
    typer.Option("--throughput", metavar="SERIES", help="Which is the throughput; counters become rates."),
]
ResponseOf = Annotated[
    str | None,
    typer.Option(
        "--response", metavar="SERIES", help="Which is the response time in seconds, for example A_sum / A_count."
    ),
]
ResponseIs = Annotated[str, typer.Option("--response-is", metavar="mean|p95", help="What of the response times it is.")]
UseOf = Annotated[
    list[str] | None,
    typer.Option("--use", metavar="NAME=SERIES", help="Which is the use of a resource, a share from 0 to 1."),
]
CountersOf = Annotated[
    list[str] | None,
    typer.Option("--counter", metavar="NAME", help="A series that counts up, if its name does not say."),
]
AlsoFrom = Annotated[
    list[str] | None, typer.Option("--also", metavar="FILE", help="A further file, joined by its times.")
]


def mapping_of(
    load: str | None,
    throughput: str | None,
    response: str | None,
    response_is: str,
    use: list[str] | None,
    counters: list[str] | None,
    axis: str = "load",
) -> ObservedMapping:
    """The options as one record. UsageError for a --use without a name, and for another --response-is."""
    uses = {}
    for one in use or ():
        name, equals, term = one.partition("=")
        if not equals or not name.strip() or not term.strip() or not name.strip().isprintable():
            raise UsageError(f"--use {words(one, 100)!r} has no name", remedy="Write it as --use cpu=SERIES.")
        uses[name.strip()[:100]] = term.strip()
    if response_is not in ("mean", "p95"):
        raise UsageError(f"--response-is {words(response_is, 40)!r} is unknown", remedy="It is mean or p95.")
    return ObservedMapping(
        load=load,
        throughput=throughput,
        response=response,
        use=uses,
        counters=tuple(counters or ()),
        response_is="p95" if response_is == "p95" else "mean",
        axis=axis,
    )
