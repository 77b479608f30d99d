"""What an alarm of a watch says to try: the next command, and the setting that asks for the limit."""

OF_MYSQL = ("mariadb", "mysql")
ADVICE: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("leak.target.memory.rss", (
        "Plan a restart before that hour; it begins again at its starting size.",
        "A cache without a bound grows like this: lower its size, or flush it, and see whether memory is given back.",
    )),
    ("leak.target.open_files", (
        "Look at what stays open: `ls -l /proc/PID/fd`.",
        "Raising the limit (LimitNOFILE, ulimit -n) only puts the hour off.",
    )),
    ("leak.system.filesystem.space", (
        "Find what grows: `du -x --max-depth=2` on that file system, twice an hour apart.",
    )),
    ("change.response", (
        "Compare what was changed at that time: a deployment, a setting, the size of the data.",
        "`loadframe investigate` on a copy of the service names the cause.",
    )),
    ("change.cpu", (
        "Compare what was changed at that time: a deployment, a setting, the mix of requests.",
    )),
    ("unit-fails", ("See the service's own log; each error stands in the day file.",)),
    ("absent", ("See the service's own log. The watch goes on, and finds it once it is back.",)),
    *((f"{kind}.table_open_cache", (
        "Raise table_open_cache while there is room (SET GLOBAL, and the configuration file); each cached table takes "
        "up to two open files, so look at the limit of open files of its process first.",
    )) for kind in OF_MYSQL),
    *((f"{kind}.max_connections", (
        "Raise max_connections, or let fewer clients connect at a time (a pool).",
    )) for kind in OF_MYSQL),
    ("process.open_files", (
        "Raise LimitNOFILE of the unit (or ulimit -n) and start the service again.",
    )),
)  # fmt: skip
"""By the id of a limit, or the kind of an alarm with what it is about."""
OTHERWISE = (
    "`loadframe limits` shows all limits and what asks for this one.",
    "`loadframe investigate` on a copy of the service proves which change moves it.",
)


def advice_for(about: str) -> tuple[str, ...]:
    """Sentences; what holds for any limit where nothing is known of this one."""
    return next((advice for name, advice in ADVICE if name == about), OTHERWISE)
