"""A connection pooler (PgBouncer, Odyssey and the like) in front of a PostgreSQL. It may send each statement over
another connection of its own, and drop what a connection asks for at its start: a table made through it may be
anywhere."""

import secrets
from collections.abc import Mapping
from contextlib import closing

from loadframe.errors import TargetError
from loadframe.kinds.postgres.control import Control

SENT = "loadframe.connection"
"""A setting that a session has only where the start-up parameter `options` has arrived."""
STATE = (
    f"SELECT pg_backend_pid(), coalesce(current_setting('{SENT}', true), ''), current_setting('search_path'),"
    " pg_postmaster_start_time()::text"
)


def refuse(control: Control, where: Mapping[str, str], words: str, port: str) -> None:
    """TargetError where connections to `where` (libpq's parameters) are not those of a server itself: the process that
    a connection was given is not the one that answers, what it was begun with has not arrived, or two connections share
    a process, change it or reach two servers. control: a connection to it. port: the server's own, for advice."""
    why = _other_process(control)
    if not why:
        try:
            with closing(_Marked(where)) as first, closing(_Marked(where)) as second:
                why = first.lacking() or second.lacking() or _shared(first, second)
        except TargetError as error:
            raise TargetError(
                f"What answers at {words} did not accept two connections with start-up parameters of their own, by "
                f"which a connection pooler is recognised: {error.fact}",
                remedy=_remedy(port),
            ) from error
    if why:
        raise TargetError(
            f"What answers at {words} is a connection pooler (such as PgBouncer), not the PostgreSQL itself: {why}",
            remedy=_remedy(port),
        )


def _remedy(port: str) -> str:
    return f"Name the server itself, by its socket or its own port ({port}). Nothing was made or changed."


class _Marked(Control):
    """A connection that is begun with settings by which it is known again."""

    def __init__(self, where: Mapping[str, str]) -> None:
        self.mark = f"loadframe_{secrets.token_hex(8)}"
        super().__init__({**where, "options": f"-c {SENT}={self.mark} -c search_path={self.mark}"}, lambda: None)

    def lacking(self) -> str:
        """Why it is no connection to a server itself; "" where it is one."""
        _, arrived, path, _ = self.one(STATE, int, str, str, str)
        if (arrived, path) != (self.mark, self.mark):
            return f"the start-up parameter options does not arrive (search_path is {path})"
        return _other_process(self)

    def process(self) -> tuple[int, str]:
        """Which one of the server's answers now, and when that server was started."""
        pid, _, _, started = self.one(STATE, int, str, str, str)
        return pid, started


def _other_process(control: Control) -> str:
    (answering,) = control.one("SELECT pg_backend_pid()", int)
    given = control.pid()
    return "" if answering == given else f"a connection was given process {given}, and process {answering} answers"


def _shared(first: _Marked, second: _Marked) -> str:
    """While one of them is amid a transaction, the other one cannot have its process."""
    before = [first.process(), second.process()]
    second.ask("BEGIN")
    held, free = second.process(), first.process()
    pids = [pid for pid, _ in (*before, free, held)]
    if len({started for _, started in (*before, free, held)}) > 1:
        return "two connections reach two servers, which were started at different times"
    return "" if before == [free, held] and free != held else f"two connections share or change their processes: {pids}"
