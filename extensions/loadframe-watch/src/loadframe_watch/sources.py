"""Counters of a watched service: MariaDB and MySQL by two SHOW statements, others by an address or a command of their
study."""

import os
import subprocess
import time
from collections.abc import Mapping
from typing import Any

from loadframe.connections.address import Place, decide, joined, parted
from loadframe.connections.bounds import MIB
from loadframe.errors import TargetError, UserError
from loadframe.host.privilege import Privilege
from loadframe.host.to_its_end import until_end
from loadframe.masking import masked
from loadframe_watch.find import Ports
from loadframe_watch.sampling import Look
from loadframe_watch.small_answer import ask

ANSWER_BYTES, ANSWER_S = 8 * MIB, 5.0
OF = "service."
SETTINGS_S = 60.0
"""Seconds between readings of a database's settings: they are ceilings, which change rarely."""
ITS_LOG = "Its own log says why; the watch goes on."
START_AGAIN = "Start the service again; the watch goes on."
RUN_AS = "Start the watch as the user who is to run it."


class Counters:
    """words: its name in messages. pid: of the process that answered, where the kernel reports it."""

    words = ""
    pid: int | None = None

    def look(self, into: Look) -> None:
        """TargetError where it does not answer."""
        raise NotImplementedError

    def close(self) -> None: ...


NAMES = {"mariadb": "MariaDB", "mysql": "MySQL"}


class DatabaseCounters(Counters):
    """One connection, opened again where it was lost."""

    def __init__(self, address: Mapping[str, str], ports: Ports) -> None:
        from loadframe.kinds.mysql.counters import MARIADB, MYSQL

        kind = address["kind"]
        counting = MARIADB if kind == "mariadb" else MYSQL
        self.words = f"{NAMES[kind]} at {address['address']}"
        self._address, self._counted, self._ports = address, counting.counted, ports
        self._specs = {spec.name: spec for spec in counting.specs}
        self._statements = (
            _show("STATUS", [spec.name for spec in counting.status]),
            _show("VARIABLES", [spec.name for spec in counting.variables]),
        )
        self._settings: dict[str, str] = {}
        self._settings_s = -SETTINGS_S
        self._connection: Any = None

    def look(self, into: Look) -> None:
        status, settings = self._statements
        now_s = time.monotonic()
        try:
            if self._connection is None:
                self._connection, self._settings_s = self._connect(), -SETTINGS_S
            if now_s - self._settings_s >= SETTINGS_S:
                self._settings, self._settings_s = self._asked(settings), now_s
            answers = {**self._settings, **self._asked(status)}
        except UserError:
            raise
        except Exception as error:
            self.close()
            raise TargetError(f"{self.words} does not answer: {str(error)[:200]}", remedy=ITS_LOG) from error
        for name, value in self._counted(answers).items():
            spec = self._specs[name]
            (into.counters if spec.cumulative else into.gauges)[spec.metric] = value

    def close(self) -> None:
        connection, self._connection, self.pid = self._connection, None, None
        if connection is not None:
            try:
                connection.close()
            except Exception:  # noqa: BLE001 - already gone
                return

    def _asked(self, statement: str) -> dict[str, str]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
            return {str(name): str(value) for name, value in cursor.fetchall()}

    def _connect(self) -> Any:
        import pwd
        from pathlib import Path

        from loadframe.connections.mariadb_connection import Reach, connect, tls_of
        from loadframe.connections.unix_socket import open_socket, peer, peer_user
        from loadframe.kinds.mysql.option_files import read_client_options

        given = self._address
        options = read_client_options(Path(given["option_file"])) if given["option_file"] else {}
        password = options.get("password") or os.environ.get("MYSQL_PWD", "")
        user = given["user"] or options.get("user") or pwd.getpwuid(os.geteuid()).pw_name
        where = given["address"]
        if not where.startswith("/"):
            host, port = parted(where, "3306")
            place = decide(host, int(port), given.get("number", ""))
            check_port(place, self._ports)
            return connect(Reach("", place, user, password, tls_of(options)), None, most_bytes=MIB, within_s=ANSWER_S)
        over = open_socket(where, timeout_s=ANSWER_S)
        if other := self._ports.another_user(peer_user(over), where):  # before a password is sent to it
            over.close()
            raise TargetError(other, remedy=START_AGAIN)
        connection: Any = connect(Reach(where, None, user, password), over, most_bytes=MIB, within_s=ANSWER_S)
        self.pid = peer(over)
        return connection


def _show(what: str, names: list[str]) -> str:
    listed = ", ".join(f"'{name}'" for name in names)
    return f"SHOW GLOBAL {what} WHERE Variable_name IN ({listed})"


class ExposedCounters(Counters):
    """Counters by an address, in Prometheus' text format or in JSON, or by a command that prints lines."""

    def __init__(self, source: Mapping[str, Any], port: int | None, ports: Ports, user: Privilege | None) -> None:
        self._source, self._port, self._ports, self._user = source, port, ports, user
        self._pick: Any = None
        self._page: Any = None
        self.words = self._filled(str(source.get("url") or f"the command {' '.join(source.get('command', ()))[:80]}"))

    def look(self, into: Look) -> None:
        from loadframe.formats.exposition import ExpositionError, Page, Pick, read_json, read_lines

        source = self._source
        if self._page is None:
            self._pick = Pick(tuple(source["select"]), tuple(source["counters"]), ())
            self._page = Page(self._pick)
        try:
            if source["form"] == "command":
                words = [self._filled(word) for word in source["command"]]
                printed = run(words, self._user, within_s=ANSWER_S, most_bytes=ANSWER_BYTES)
                exposed = read_lines(printed, self._pick)
            else:
                data, content_type = self._answered()
                exposed = (
                    self._page.read(data, content_type=content_type)
                    if source["form"] == "prometheus"
                    else read_json(data, self._pick)
                )
        except ExpositionError as error:
            raise TargetError(f"{self.words}: {error}", remedy="Correct target.metrics.") from error
        for name, value in exposed.values.items():
            (into.counters if name in exposed.counted else into.gauges)[f"{OF}{name}"] = value

    def _answered(self) -> tuple[bytes, str]:
        place = decide(self._source["host"], self._source["port"] or self._port or 80)
        check_port(place, self._ports)
        named, path = joined(place.host, place.port), self._source["path"]
        try:
            answer = ask(place.number, place.port, path, host=named, most_bytes=ANSWER_BYTES, within_s=ANSWER_S)
        except (OSError, ValueError) as error:
            raise TargetError(f"{self.words} does not answer: {str(error)[:200]}", remedy=ITS_LOG) from error
        if answer.status != 200:
            raise TargetError(f"{self.words} answered {answer.status}", remedy=ITS_LOG)
        return answer.body, answer.headers.get("content-type", "")[:100].lower()

    def _filled(self, text: str) -> str:
        return text.replace("{port}", str(self._port)) if self._port else text


def check_port(place: Place, ports: Ports) -> None:
    """TargetError where another user has taken a port of this machine since the watch began."""
    if place.here and (other := ports.taken(place.port)):
        raise TargetError(other, remedy=START_AGAIN)


def run(command: list[str], user: Privilege | None, *, within_s: float, most_bytes: int = 0) -> bytes:
    """Output, up to most_bytes, of a study's program run as the service's user, without variables of our environment
    that may hold a secret. user: None where unknown; then nothing is run. TargetError."""
    import signal
    from contextlib import suppress

    from loadframe.host.environment import NO_FOLDER, passed_on
    from loadframe.host.processes import Allowance, runnable, spawn

    masked_command = masked(" ".join(command))[:80]
    if user is None:
        raise TargetError(f"`{masked_command}` is not run: who runs the service is not known", remedy=RUN_AS)
    program = command[0] if "/" in command[0] else runnable(command[0], user) or command[0]
    out = subprocess.PIPE if most_bytes else subprocess.DEVNULL
    process = spawn(
        [program, *command[1:]], Allowance(user), stdout=out, stderr=subprocess.DEVNULL, cwd=NO_FOLDER,
        env=passed_on(),
    )  # fmt: skip
    until_s = time.monotonic() + within_s
    try:
        said = until_end(process.stdout, until_s, most_bytes) if process.stdout is not None else b""
        if len(said) > most_bytes:
            raise TargetError(
                f"`{masked_command}` prints more than {most_bytes >> 20} MiB", remedy="Let it print less."
            )
        process.wait(max(0.0, until_s - time.monotonic()))
    except subprocess.TimeoutExpired as error:
        raise TargetError(f"`{masked_command}` did not end within {within_s:g} s", remedy="Correct it.") from error
    finally:
        with suppress(ProcessLookupError):  # its session has all that it started
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
    if process.returncode != 0:
        raise TargetError(f"`{masked_command}` ended with exit status {process.returncode}", remedy="Correct it.")
    return said
