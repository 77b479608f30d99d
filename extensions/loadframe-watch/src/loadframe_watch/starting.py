"""Begin a watch: find and check its subject with all that Loadframe knows, then become the light process that stays.
wishes: what the command line says besides the subject, by the fields of the plan; None: as the study says."""

import os
import re
import shlex
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from loadframe.bench.checking import check_consent
from loadframe.connections.address import decide, is_here, parted
from loadframe.errors import MachineError, StudyError, TargetError, UsageError
from loadframe.formats.json_text import JsonError, parse_json, write_json
from loadframe.formats.said import why_no_text
from loadframe.host import identity, listening
from loadframe.host.environment import located, own_environment, python
from loadframe.kinds.behind import comm_of
from loadframe.kinds.registry import BY_OPTION, BY_STUDY, attach
from loadframe.kinds.service.discovery import Found, find
from loadframe.knowledge.kinds import rows_of
from loadframe.study import Study
from loadframe.study.exposed_tables import MetricsTable
from loadframe_watch.alarms import filled
from loadframe_watch.child import check_webhook
from loadframe_watch.find import how_to_find, listening_users, run_by, whose
from loadframe_watch.records import WatchPlan
from loadframe_watch.sources import RUN_AS

COUNTED = {kind: (f"{kind}.connections", (f"{kind}.questions",)) for kind in ("mariadb", "mysql")}
"""Databases whose own counters a watch reads: load, and request counters."""
PRIVATE = "A watch is for a server that runs already"
CONNECTIONS = "target.connections"


def of_study(study: Study, *, every_s: float | None = None, **wishes: Any) -> WatchPlan:
    """StudyError for a study that starts its own target, TargetError."""
    check_consent(study)
    target, name = study.target, study.study.name
    if target.is_running_service:
        service = find(target)
        plan = _service(study, service)
    elif target.attach is not None:
        option_file = Path(target.option_file) if target.option_file else None
        plan = _database(f"{target.kind}:{target.attach}", option_file, "", BY_STUDY)
    elif target.kind == "url":
        plan = WatchPlan("", "", load=CONNECTIONS)
    else:
        raise StudyError(
            f"{PRIVATE}; the study starts a {target.kind} of its own",
            remedy="Name the running one: target.attach, or kind = service with pid, listen, unit or container.",
        )
    plan = replace(plan, subject=plan.subject or name, load=study.watch.load or plan.load, unit=_unit(study, plan))
    allowed_s = study.watch.every
    if every_s is not None and every_s < allowed_s and "every" in study.watch.model_fields_set:
        raise StudyError(
            f"--every {every_s:g}s is more often than the study allows ({allowed_s:g} s)",
            remedy="Ask for less, or change watch.every.",
        )
    return _wished(replace(plan, every_s=allowed_s), name, every_s=every_s, **wishes)


def of_process(pid: int, **wishes: Any) -> WatchPlan:
    """TargetError where there is none."""
    identity.running(pid)
    name = re.sub(r"[^\w.-]", "-", comm_of(pid)) or "process"
    ports = listening.ports_of([member.pid for member in identity.family(pid)])
    plan = WatchPlan(f"{name} (pid {pid})", "", find=how_to_find(pid, ports), kinds=("process",), load=CONNECTIONS)
    return _wished(plan, f"{name}-{pid}", **wishes)


def of_server(server: str, option_file: Path | None, user: str, **wishes: Any) -> WatchPlan:
    """StudyError for a kind that cannot be attached to, TargetError."""
    return _wished(_database(server, option_file, user, BY_OPTION), server.partition(":")[0], **wishes)


def begin(plan: WatchPlan) -> NoReturn:
    """Become the process that stays. MachineError where the system refuses, StudyError for a plan that is no text."""
    text = write_json(plan.as_record())
    try:
        parse_json(text)
    except JsonError as error:
        raise StudyError(
            f"The watch cannot be handed over: {error}", remedy="Give names, paths and commands in plain text."
        ) from error
    descriptor = os.memfd_create("loadframe-watch-plan", 0)
    os.write(descriptor, text.encode())
    os.set_inheritable(descriptor, True)
    command = python("loadframe_watch.daemon", str(descriptor))
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(command[0], command, own_environment())
    except OSError as error:
        raise MachineError(
            f"{command[0]} cannot be run: {error.strerror}", remedy="Install Loadframe again."
        ) from error


def _service(study: Study, service: Found) -> WatchPlan:
    target = study.target
    host, port = parted(service.address, "80")
    first = service.first[0].pid
    ways: dict[str, Any] = {"listen": [decide(host, int(port)).number, int(port)], **whose(first)}
    if service.group is not None:
        ways["groups"] = [str(service.group)]
    elif target.pid is not None:
        ways |= {**how_to_find(first), "listen": ways["listen"]}
    limits = tuple(
        {"name": limit.name, "use": limit.use, "ceiling": limit.ceiling, "title": limit.title, "loud": limit.loud}
        for limit in target.limit
    )
    return WatchPlan(
        service.words, "", find=ways, kinds=("process", "service"), load=CONNECTIONS, limits=limits,
        sources=tuple(_source(table) for table in target.metrics if table.stages is None),
        requests=tuple(f"service.{name}" for table in target.metrics for name in table.requests),
    )  # fmt: skip


def _source(table: MetricsTable) -> dict[str, Any]:
    address = table.address
    common = {"select": list(table.select), "counters": list(table.counters)}
    if address is None:
        return {"form": "command", "command": list(table.command or ()), **common}
    form = "prometheus" if table.prometheus is not None else "json"
    url = table.prometheus or table.json_address
    return {"form": form, "url": url, "host": address.host, "port": address.port, "path": address.path, **common}


def _database(where: str, option_file: Path | None, user: str, account: str) -> WatchPlan:
    """One that the light process can query has its own counters; any other is watched by its process."""
    with closing(attach(where, option_file=option_file, user=user, account=account)) as server:
        pid = server.pid()
        subject = f"{server.version()} at {server.describe()}" + (f" (pid {pid})" if pid is not None else "")
    if server.kind not in COUNTED and pid is None:
        raise TargetError(
            f"The process of {subject} is not visible here, and a watch reads no counters of {server.kind}",
            remedy="Run it on the server's machine.",
        )
    ways = {} if pid is None else {**how_to_find(pid), "listen": None}
    kinds = (*(("process",) if pid is not None else ()), rows_of(server.kind))
    load, requests = COUNTED.get(server.kind, (CONNECTIONS, ()))
    asked: Mapping[str, str] = server.address if server.kind in COUNTED else {}
    if pid is not None and not asked:
        ports = listening.ports_of([pid])
        ways["listen"] = ["", ports[0]] if len(ports) == 1 else None
    return WatchPlan(subject, "", find=ways, server=dict(asked), kinds=kinds, load=load, requests=requests)


def _unit(study: Study, plan: WatchPlan) -> dict[str, Any]:
    """The study's program, else a request that changes nothing; empty where the target is not reached by HTTP."""
    if study.watch.unit:
        return {"form": "command", "command": list(study.watch.unit)}
    target = study.target
    reads = [request for request in study.workload.request if request.method == "GET"]
    if study.workload.request and not reads:
        return {}
    if target.is_running_service and (reads or study.workload.kind == "http"):
        number, port = plan.find["listen"]
        path = reads[0].path if reads else (target.paths.split() or ["/"])[0]
        host = number
    elif target.kind == "url":
        from urllib.parse import urlsplit

        parts = urlsplit(str(target.settings["url"]))
        host, port = str(parts.hostname), parts.port or 80
        path = reads[0].path if reads else (str(target.settings.get("paths", "")).split() or ["/"])[0]
    else:
        return {}
    headers = [list(pair) for pair in reads[0].headers.items()] if reads else []
    return {"form": "http", "host": host, "port": port, "path": path, "headers": headers,
            "expect": reads[0].expect if reads else None}  # fmt: skip


def _wished(
    plan: WatchPlan,
    name: str,
    *,
    every_s: float | None = None,
    folder: Path | None = None,
    load: str = "",
    command: str = "",
    **others: Any,
) -> WatchPlan:
    plan = replace(plan, **others)
    if plan.webhook:
        check_webhook(filled(plan.webhook), plan.webhook_owner)
    folder = folder or Path("watches") / name
    if (why := why_no_text(folder)) is not None:
        raise StudyError(f"The watch folder cannot be there: {why}", remedy="Name another with --folder.")
    every_s = plan.every_s if every_s is None else every_s
    if plan.unit and every_s < plan.interval_s:
        raise StudyError(
            f"The unit of work is due every {every_s:g} s, and the watch looks only every {plan.interval_s:g} s",
            remedy=f"Give --interval {every_s:g}s, or do the unit of work more rarely (--every).",
        )
    commands = [task for task in (plan.unit, *plan.sources) if task.get("form") == "command"]
    if commands and run_by(plan.find) is None:
        raise StudyError(
            f"`{' '.join(commands[0]['command'])[:80]}` would be run as root: who runs the service is not known here",
            remedy=RUN_AS,
        )
    return replace(
        plan,
        port_users=_port_users(plan),
        folder=str(folder.absolute()),
        every_s=every_s,
        load=load or plan.load,
        command=_command(command),
    )


def _port_users(plan: WatchPlan) -> dict[str, tuple[int, ...]]:
    """Of those that will be asked. A port is the service's, too, where a source names none."""
    asked = [
        (task["host"], task["port"]) for task in (plan.unit, *plan.sources) if task.get("form") != "command" and task
    ]
    asked += [plan.find["listen"]] if plan.find.get("listen") else []
    if plan.server and not plan.server["address"].startswith("/"):
        asked.append(parted(plan.server["address"], "3306"))
    ports = {int(port) for host, port in asked if port and (not host or is_here(host))}
    by_port = {str(port): tuple(sorted(listening_users(port))) for port in ports}
    return {port: users for port, users in by_port.items() if users}


def _command(text: str) -> tuple[str, ...]:
    if not text:
        return ()
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--command cannot be read: {error}", remedy="Close its quotes.") from error
    program = words[0] if words and "/" in words[0] else located(words[0]) if words else None
    if program is None or not os.access(program, os.X_OK):
        raise UsageError(f"--command: {text[:80]!r} names no program", remedy="Name one by its path.")
    return (str(Path(program).absolute()), *words[1:])
