"""The options that the installed sysbench and its scripts have, by their own help, and what a study may give them."""

import functools
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from loadframe.errors import MissingTool, StudyError
from loadframe.host.environment import NO_FOLDER, environment, located
from loadframe.model import SettingValue
from loadframe.workloads.options import did_you_mean

SCRIPTS = (
    "bulk_insert",
    "oltp_delete",
    "oltp_insert",
    "oltp_point_select",
    "oltp_read_only",
    "oltp_read_write",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_write_only",
    "select_random_points",
    "select_random_ranges",
)  # fmt: skip
"""Those of sysbench 1.0 that load a database."""

LEVEL = "the levels of [load] are it: the axis threads, or the axis rate with the option connections"
STEP = "a step ends by [measure] window"
SERVER = "the target decides it"
LOG = "every request is logged, and the quantiles are taken from there"
RESERVED: Mapping[str, str] = {
    "threads": LEVEL, "num-threads": LEVEL, "rate": LEVEL, "tx-rate": LEVEL,
    "time": STEP, "max-time": STEP, "events": STEP, "max-requests": STEP, "forced-shutdown": STEP, "warmup-time": STEP,
    "db-driver": SERVER, "config-file": SERVER,
    **{f"mysql-{name}": SERVER for name in ("host", "port", "socket", "user", "password", "db")},
    **{f"pgsql-{name}": SERVER for name in ("host", "port", "user", "password", "db")},
    "host": SERVER, "port": SERVER, "socket": SERVER, "user": SERVER, "password": SERVER, "db": SERVER,
    "percentile": LOG, "histogram": LOG, "report-interval": LOG, "report-checkpoints": LOG,
    "mysql-dry-run": "nothing would be measured",
    **dict.fromkeys(("help", "version", "verbosity", "debug", "db-debug", "mysql-debug"), "it changes what is printed"),
}  # fmt: skip
"""What Loadframe sets itself, with the reason."""
LINE = re.compile(r"^\s+--([\w-]+)(\[=on\|off\]|=\S+)?\s")
SWITCH, NUMBER = "[=on|off]", "=N"


@dataclass(frozen=True, slots=True)
class Installed:
    """options: the form of each value ("=N", "[=on|off]", "=STRING") by the name of the option, with dashes."""

    script: Path
    options: Mapping[str, str]


def read_help(text: str) -> dict[str, str]:
    """The form of each option's value, by its name with dashes, from what sysbench prints for --help or "help"."""
    found = (LINE.match(line) for line in text.splitlines())
    return {_dashed(match[1]): match[2] or "" for match in found if match}


@functools.cache
def installed(script: str) -> Installed:
    """What the installed sysbench has for this script. MissingTool without sysbench or without the script."""
    folder = _scripts()
    path = folder / f"{script}.lua" if folder is not None else None
    if path is None or not path.exists():
        raise MissingTool(
            f"sysbench's {script} is not installed: {path or 'there is no sysbench on PATH'}.",
            remedy="Install it: sudo apt-get install sysbench",
        )
    general = _printed("--help") | ({} if script == "bulk_insert" else _printed(str(path), "help"))
    return Installed(path, general)


def search_paths() -> dict[str, str]:
    """sysbench's scripts load by name what is beside them, not, as by its own default, in the working folder."""
    folder = _scripts()
    return {} if folder is None else {"LUA_PATH": f"{folder}/?.lua"}


def _scripts() -> Path | None:
    """The folder of the scripts of the sysbench that is on PATH; None without one."""
    program = located("sysbench")
    return Path(program).resolve().parents[1] / "share" / "sysbench" if program else None


def checked(script: str, options: Mapping[str, SettingValue]) -> dict[str, str]:
    """The options as sysbench takes them, by their names with dashes. StudyError for one that it does not have, a value
    that cannot be one, or what Loadframe sets itself; MissingTool without sysbench."""
    found: dict[str, str] = {}
    for given, value in options.items():
        name = _dashed(given)
        if (why := RESERVED.get(name)) is not None:
            raise StudyError(
                f"workload.options.{given} = {value!r}: Loadframe sets this option of sysbench itself.",
                remedy=f"Omit it of [workload.options], which has script and connections: {why}.",
            )
        known = installed(script).options
        if name not in known:
            offered = sorted(one for one in known if one not in RESERVED)
            raise StudyError(
                f"sysbench's {script} has no option {given!r} (value {value!r}).",
                remedy=f"{did_you_mean(name, offered)}Its options are: {', '.join(offered)}.",
            )
        found[name] = _value(given, value, known[name])
    return found


def _value(name: str, value: SettingValue, form: str) -> str:
    if form == SWITCH:
        right, accepted = "true or false", isinstance(value, bool) or value in ("on", "off")
    elif form == NUMBER:
        right = "a number from 0"
        accepted = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")
    else:
        right, accepted = "text in one line", not isinstance(value, bool) and "\n" not in str(value)
    if not accepted:
        raise StudyError(
            f"workload.options.{name} = {value!r} is not a value of this sysbench option.",
            remedy=f"It must be {right}.",
        )
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def _dashed(name: str) -> str:
    """sysbench takes dashes and underscores for the same."""
    return name.replace("_", "-")


def _printed(*arguments: str) -> dict[str, str]:
    said = subprocess.run(
        [located("sysbench") or "sysbench", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        cwd=NO_FOLDER,
        env={**environment(), **search_paths()},
        encoding="utf-8",
        errors="replace",
    )
    return read_help(said.stdout)
