"""Squid's settings and counters, and its cache manager, asked over HTTP on one kept connection."""

import http.client
import re
import threading
from pathlib import Path

from loadframe.connections.http_connection import ERRORS, Connection, body
from loadframe.kinds.catalogue import catalogue_in, counters_in, tunables_in
from loadframe.model import SettingValue

_FILE, _METRICS = (Path(__file__).with_name(name) for name in ("settings.toml", "metrics.txt"))
CATALOGUE, TUNABLES = catalogue_in(_FILE), tunables_in(_FILE)
"""dynamic: a reconfiguration (SIGHUP) gives what a restart would. cache_dir_*: a change begins with an empty cache."""

COUNTERS, GAUGES = counters_in(_METRICS, "counters"), counters_in(_METRICS, "info")
"""By the cache manager's names, mgr:counters and mgr:info."""
ALL_COUNTERS = tuple(counters_in(_METRICS).values())
"""Of these, following: requests minus hits; fetches and reads from the disk; objects written to the disk that are no
longer there. held: cache_mem; cache_swap_low's share of cache_dir_size; descriptors without the reserve; connections,
and their limit: client_ip_max_connections without ours, as Squid allows one more than it says. log: counted in the log,
as Squid keeps no counter of them."""

TIMEOUT_S = 5.0
"""Squid is one thread: without an answer for longer it is too busy, or has no descriptor left for us."""
KIB = 1024.0
OWN_CONNECTION = 1
MARK = "cache_mgr"
"""The directive that marks the configuration in use: a name for people to write to."""


class Manager:
    """The cache manager of one Squid, from its start to its end; safe to use from several threads, one at a time."""

    def __init__(self) -> None:
        self._connection = _connection(http.client.HTTP_PORT)
        self._lock = threading.Lock()
        self._asked = 0

    def connect_to(self, port: int) -> None:
        with self._lock:
            self._connection.close()
            self._connection = _connection(port)

    def page(self, name: str) -> str | None:
        """A page of the manager, such as "info"; None where it does not answer."""
        with self._lock:
            for _ in range(2):  # the kept connection may have been closed meanwhile
                try:
                    return self._ask(name)
                except ERRORS:
                    self._connection.close()
            return None

    def read(self) -> dict[str, float]:
        """By the names of COUNTERS and GAUGES, and "client_connections", without our own; empty: no answer."""
        before = self._asked  # it counts a question once it has answered
        counters, info, clients = self.page("counters"), self.page("info"), self.page("client_list")
        if counters is None or info is None or clients is None:
            return {}
        values = {**parse_counters(counters), **parse_info(info), "client_connections": connected(clients)}
        values["requests"] -= before
        values["client_connections"] -= OWN_CONNECTION
        return values

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _ask(self, name: str) -> str:
        answer = self._connection.get(f"/squid-internal-mgr/{name}")
        text = body(answer).decode(errors="replace")
        self._asked += 1
        if answer.status != http.client.OK:
            raise http.client.HTTPException(f"status {answer.status}")
        return text


def _connection(port: int) -> Connection:
    return Connection(f"127.0.0.1:{port}", within_s=TIMEOUT_S, silent_s=TIMEOUT_S)


def parse_counters(text: str) -> dict[str, float]:
    """mgr:counters, lines of "name = number", by the names of COUNTERS."""
    said = dict(re.findall(r"^(\S+) = ([0-9.]+)$", text, re.M))
    return {spec.name: float(said[name]) for name, spec in COUNTERS.items() if name in said}


def parse_info(text: str) -> dict[str, float]:
    """mgr:info, lines of "name: number KB" and "number name", by the names of GAUGES; sizes in bytes."""
    values = {}
    for name, spec in GAUGES.items():
        words = re.escape(name)
        if (size := re.search(rf"^\s*{words}:\s*([0-9.]+)( KB)?$|^\s*([0-9]+) {words}$", text, re.M)) is not None:
            values[spec.name] = float(size[1] or size[3]) * (KIB if size[2] else 1.0)
    return values


def connected(text: str) -> float:
    """mgr:client_list: connections of all clients."""
    return float(sum(map(int, re.findall(r"^Currently established connections: (\d+)$", text, re.M))))


def descriptors(text: str) -> tuple[int, int]:
    """mgr:info: the most descriptors, and how many it reserves: with only these left it accepts no client."""
    return _number(r"Maximum number of file descriptors", text), _number(r"Reserved number of file descriptors", text)


def _number(words: str, text: str) -> int:
    match = re.search(rf"{words}:\s*(\d+)", text)
    return int(match[1]) if match is not None else 0


def mark(text: str) -> str | None:
    """mgr:config: the mark of the effective configuration."""
    match = re.search(rf"^{MARK} (\S+)$", text, re.M)
    return match[1] if match is not None else None


def parse_config(text: str, stores: str) -> dict[str, SettingValue]:
    """mgr:config in canonical form, defaults included; cache_dir_size from mgr:storedir (`stores`)."""
    said: dict[str, str] = dict(re.findall(r"^(\S+) (.+)$", text, re.M))
    kind, _, *layout = said.get("cache_dir", "none .").split()
    said["cache_dir_kind"] = kind
    if kind != "none":
        said["cache_dir_size"] = str(_number("Maximum Swap Size *", stores) << 10)
    if kind.endswith("ufs"):
        said["cache_dir_l1"], said["cache_dir_l2"] = layout[1:3]
    if "refresh_pattern" in said:
        said["refresh_pattern_min"] = said["refresh_pattern"].split()[1]
    plain = {name: text.removesuffix(" bytes").removesuffix(" seconds") for name, text in said.items()}
    return {name: CATALOGUE.shown(name, plain.get(name)) for name in CATALOGUE.names()}
