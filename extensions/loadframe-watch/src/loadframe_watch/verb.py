"""loadframe watch: monitor a running service from outside, and warn before a limit is reached."""

from pathlib import Path
from typing import Annotated, Any

import typer

import loadframe
from loadframe.cli.common import Json, Sets, command, duration_of, show, size_of
from loadframe.cli.terminal import say
from loadframe.errors import UsageError
from loadframe.host.identity import boot_id

SHORTEST_S = 1.0
FEWEST_DAYS = 15
"""The fit reads so far back."""
SMALLEST = 50 << 20


def watch(
    study: Annotated[
        Path | None, typer.Argument(metavar="[STUDY]", help="A study whose target runs already.", show_default=False)
    ] = None,
    pid: Annotated[int | None, typer.Option("--pid", metavar="P", help="The pid of a process on this machine.")] = None,
    attach: Annotated[
        str | None,
        typer.Option("--attach", metavar="KIND:ADDRESS", help="A running database, as for `loadframe limits`."),
    ] = None,
    option_file: Annotated[
        Path | None, typer.Option("--option-file", metavar="FILE", help="The account for --attach.")
    ] = None,
    user: Annotated[str, typer.Option("--user", help="The account's name for --attach.")] = "",
    every: Annotated[
        str | None, typer.Option("--every", metavar="TIME", help="How often one unit of work is done (5m).")
    ] = None,
    interval: Annotated[str, typer.Option("--interval", metavar="TIME", help="How often counters are read.")] = "10s",
    folder: Annotated[
        Path | None, typer.Option("--folder", metavar="DIR", help="The watch folder; one watcher each.")
    ] = None,
    load: Annotated[str, typer.Option("--load", metavar="METRIC", help="The metric that is the load.")] = "",
    webhook: Annotated[str, typer.Option("--webhook", metavar="URL", help="Alarms are sent there (POST, JSON).")] = "",
    webhook_owner: Annotated[
        str, typer.Option("--webhook-owner", metavar="WHO", help="Who has authorised a webhook on another machine.")
    ] = "",
    program: Annotated[
        str, typer.Option("--command", metavar="COMMAND", help="A program that gets each alarm on its stdin.")
    ] = "",
    exit_on_alarm: Annotated[bool, typer.Option("--exit-on-alarm", help="End with exit code 3 at an alarm.")] = False,
    imports: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="FILE",
            help="Begin from what monitoring recorded: CSV, a Prometheus range query, sysstat. More files are joined.",
        ),
    ] = None,
    series: Annotated[
        list[str] | None,
        typer.Option(
            "--as",
            metavar="NAME=SERIES",
            help="For --import: the series that is load, throughput, response, or the use of a limit.",
        ),
    ] = None,
    counter: Annotated[
        list[str] | None, typer.Option("--counter", metavar="NAME", help="For --import: a series that counts up.")
    ] = None,
    for_: Annotated[str | None, typer.Option("--for", metavar="TIME", help="End after this time.")] = None,
    keep_days: Annotated[
        int, typer.Option("--keep-days", metavar="N", help="Days that are kept, the newest.", min=FEWEST_DAYS)
    ] = 400,
    keep_size: Annotated[
        str, typer.Option("--keep-size", metavar="SIZE", help="Size that the days in the folder may have (1GiB).")
    ] = "1GiB",
    overrides: Sets = None,
    as_json: Json = False,
) -> None:
    """Watch a service in production: counters, limits, one unit of work at intervals; an alarm before something gives.

    With --import alone the answer is what the imported rows say; else the watch goes on from there.
    Ends by Ctrl-C, after --for, or at an alarm with --exit-on-alarm.
    """
    with command(as_json):
        from loadframe.study.fields import show_size
        from loadframe_watch import starting as watching
        from loadframe_watch.observed.report import import_json, render_import
        from loadframe_watch.records import WatchPlan

        subjects = sum(subject is not None for subject in (study, pid, attach))
        if subjects > 1 or (subjects == 0 and not imports):
            raise typer.BadParameter("name exactly one of STUDY, --pid and --attach")
        if (series or counter) and not imports:
            raise typer.BadParameter("--as and --counter belong to --import")
        if attach is None and (option_file is not None or user):
            raise typer.BadParameter("--option-file and --user belong to --attach")
        if study is None and overrides:
            raise typer.BadParameter("--set belongs to a STUDY")
        keep_bytes = size_of("--keep-size", keep_size, "1GiB")
        if keep_bytes < SMALLEST:
            raise UsageError(
                f"--keep-size {keep_size} is less than a day and the model need",
                remedy=f"Give at least {show_size(SMALLEST)}.",
            )
        wishes: dict[str, Any] = {
            "every_s": None if every is None else _duration_s("--every", every),
            "interval_s": _duration_s("--interval", interval),
            "for_s": None if for_ is None else _duration_s("--for", for_),
            "folder": folder, "load": load, "webhook": webhook, "webhook_owner": webhook_owner, "command": program,
            "exit_on_alarm": exit_on_alarm, "as_json": as_json, "keep_days": keep_days, "keep_bytes": keep_bytes,
        }  # fmt: skip
        if imports:
            from loadframe_watch.importing import begin_from, mapping_of

            mapping = mapping_of(series or [], counter or [])
            if subjects == 0:
                alone = WatchPlan("", str(folder or ""), load=load)
                show(as_json, import_json, render_import, begin_from(imports, mapping, alone))
                return
        boot_id()  # CageError without /proc, from which a watch reads nearly everything
        if study is not None:
            plan = watching.of_study(loadframe.load_study(study, overrides or []), **wishes)
        elif attach is not None:
            plan = watching.of_server(attach, option_file, user, **wishes)
        else:
            plan = watching.of_process(pid or 0, **wishes)
        if imports:
            say(render_import(begin_from(imports, mapping, plan)))
        watching.begin(plan)


def _duration_s(option: str, text: str) -> float:
    seconds = duration_of(option, text, "10s")
    if seconds < SHORTEST_S:
        raise UsageError(f"{option} {text} is shorter than a second", remedy="Give at least 1s.")
    return seconds
