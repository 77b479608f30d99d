"""loadframe growth: how a load goes on as the database grows, and where its memory ends."""

from pathlib import Path
from typing import Annotated

import typer

from loadframe.cli.common import Json, command, is_folder, opened, show, size_of
from loadframe.errors import UsageError
from loadframe.formats.plain_numbers import LARGEST, finite
from loadframe.formats.said import words

TIMES = {"k": 1e3, "M": 1e6, "G": 1e9}


def growth(
    data: Annotated[
        str,
        typer.Argument(
            metavar="RUN|CSV",
            help="A run over the axis entries or change_rate, or a CSV file of entries,seconds[,reads]; - is stdin.",
        ),
    ],
    at: Annotated[
        str | None, typer.Option("--at", metavar="N,..", help="The sizes to forecast, in entries: 10M,100M.")
    ] = None,
    up_to: Annotated[
        str | None,
        typer.Option("--up-to", metavar="N", help="Forecast from the load up to N entries, and score it at the rest."),
    ] = None,
    memory: Annotated[
        list[str] | None,
        typer.Option("--memory", metavar="NAME=SIZE", help="A memory of the database, for example buffer_pool=4GiB."),
    ] = None,
    database: Annotated[
        str | None, typer.Option("--database", metavar="SIZE", help="The size of the database at the end of the load.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Forecast the rate and the time of a load at more entries, from one long load or loads of several sizes."""
    with command(as_json):
        from loadframe_watch.growth import loads, report

        sizes = [_count(part, "--at") for part in at.split(",")] if at is not None else []
        limit = _count(up_to, "--up-to") if up_to is not None else None
        run = opened(Path(data)) if is_folder(data) else None
        if run is not None and run.declared().load.axis == "change_rate":  # of a change log: following is judged
            steps, followed = loads.following_of_run(run)
            show(as_json, report.following_json, report.render_following, steps, followed)
            return
        windows = loads.windows_of_run(run) if run is not None else loads.read_load(data)
        held = dict(_memory(text) for text in memory or [])
        if held and database is None:
            raise UsageError(
                "--memory alone does not tell how many entries it holds",
                remedy="Add --database SIZE, at the load's end.",
            )
        if database is not None:
            entry_bytes = _size(database, "--database") / max(window.after for window in windows)
            held = {name: size / entry_bytes for name, size in held.items()}
        forecast = loads.forecast_growth(windows, sizes, memories=held, up_to=limit)
        show(as_json, report.growth_json, report.render_growth, forecast)


def _count(text: str, option: str) -> float:
    text = text.strip()
    times = TIMES.get(text[-1:], 1.0)
    value = finite(text.removesuffix(text[-1:]) if times > 1 else text)
    if value is None or not 1 <= value * times <= LARGEST:
        raise UsageError(
            f"{option} {words(text)!r} is no number of entries", remedy="For example 300k, 10M or 2500000."
        )
    return value * times


def _memory(text: str) -> tuple[str, float]:
    name, equals, size = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--memory {words(text)!r} is not NAME=SIZE", remedy="For example buffer_pool=4GiB.")
    return name, _size(size, "--memory", "buffer_pool=4GiB")


def _size(text: str, option: str, example: str = "4GiB") -> float:
    size = size_of(option, text, example)
    if size == 0:
        raise UsageError(f"{option} is 0", remedy="Leave it out, or give a size above zero.")
    return float(size)
