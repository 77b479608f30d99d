"""What works for a coordinator on each host: a process at the end of a connection that the coordinator opened.

It reads questions from stdin and answers on stdout (wire.py); nothing else may write there. It ends, and all that it
does with it, once stdin is closed or nothing has been heard for LEASE_S: by a thread of its own, so that no work that
takes long keeps it. By itself it changes nothing on its host and loads nothing: that is its worker's (keeping.py).
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from loadframe.fleet.identity import Identity
from loadframe.fleet.keeping import QUESTIONS, Kept
from loadframe.fleet.links import Listener, carried_json, measure
from loadframe.fleet.looking import facts, use_of_cpus
from loadframe.fleet.routes import check_is_reached, route
from loadframe.fleet.wire import AGENT, LEASE_S, Closed, Lines, Silent, WireError, read, send, written
from loadframe.host.signals import no_core_dumps

LONGEST_LOOK_S = 60.0
LISTEN_S = 60.0


class Agent:
    """Answers until its coordinator is gone."""

    def __init__(self, source: int, sink: int) -> None:
        self._lines = Lines(source)
        self._sink = sink
        self._writing = threading.Lock()
        self._unheard = False
        self._listener: Listener | None = None
        self._worker: Kept | None = None
        self._asked: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "doctor": _doctor,
            "cpus": _cpus,
            "listen": self._listen,
            "listen_no_more": self._listen_no_more,
            "link": _link,
            "route": lambda said: route(str(said["address"])),
        }

    def work(self) -> str:
        """Until the coordinator is gone; why that is."""
        self._say({"schema": AGENT, **facts()})
        while True:
            if self._unheard:
                return f"The coordinator has taken nothing for {LEASE_S:g} s."
            try:
                line = self._lines.line(LEASE_S)
                at = time.time(), time.monotonic()
                message = read(line)
            except Silent:
                if self._lines.silent_for(LEASE_S):
                    return f"The coordinator has said nothing for {LEASE_S:g} s."
                continue
            except (Closed, WireError) as error:
                return str(error)
            if message.get("ask") == "clock":
                self._say({"id": message.get("id"), "answer": {"wall_s": at[0], "monotonic_s": at[1]}})
                continue
            if "beat" in message:
                self._say({"beat": True})
            if message.get("ask") in QUESTIONS:
                self._work().pass_on(line, message.get("id"))
            elif self._worker is not None:
                self._worker.pass_on(b'{"beat": true}')
            if "ask" in message and message["ask"] not in QUESTIONS:
                threading.Thread(target=self._answer, args=(message,), daemon=True).start()

    def _answer(self, message: Mapping[str, Any]) -> None:
        asked = self._asked.get(str(message["ask"]))
        number = message.get("id")
        try:
            if asked is None:
                raise ValueError(f"this agent has no answer to {message['ask']!r}")
            self._say({"id": number, "answer": asked(message)})
        except Exception as error:  # noqa: BLE001 - whatever it is, the coordinator is who tells of it
            self._say({"id": number, "error": f"{type(error).__name__}: {error}"[:2000]})

    def end(self) -> None:
        """The worker puts everything back."""
        if self._worker is not None:
            self._worker.close()

    def _work(self) -> Kept:
        if self._worker is None:
            self._worker = Kept(self._pass, lambda number, why: self._say({"id": number, "error": why}))
        return self._worker

    def _say(self, message: dict[str, Any]) -> None:
        self._pass(written(message))

    def _pass(self, data: bytes) -> None:
        with self._writing, contextlib.suppress(OSError):  # the coordinator is gone, which reading tells
            if not self._unheard:
                self._unheard = not send(self._sink, data, LEASE_S)

    def _listen(self, message: Mapping[str, Any]) -> dict[str, Any]:
        self._listen_no_more({})
        check_is_reached(str(message["address"]))
        self._listener = Listener(str(message["address"]), _identity(message), LISTEN_S)
        return {"port": self._listener.port}

    def _listen_no_more(self, _message: Mapping[str, Any]) -> dict[str, Any]:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        return {}


def _doctor(_message: Mapping[str, Any]) -> dict[str, Any]:
    from loadframe.machine import examine  # imports every kind and workload

    rows = [{"part": row.kind, "what": row.what, "found": row.found, "get": row.how_to_get_it} for row in examine()]
    return {"checks": rows}


def _cpus(message: Mapping[str, Any]) -> dict[str, Any]:
    return use_of_cpus(min(LONGEST_LOOK_S, float(message["seconds"])))


def _link(message: Mapping[str, Any]) -> dict[str, Any]:
    return carried_json(measure(str(message["address"]), int(message["port"]), _identity(message)))


def _identity(message: Mapping[str, Any]) -> Identity:
    return Identity(str(message["certificate"]), str(message["key"]), str(message["authority"]))


def main() -> None:
    """Speak through the standard streams. What a library prints goes to stderr."""
    no_core_dumps()
    sink = os.dup(1)
    os.dup2(2, 1)
    agent = Agent(0, sink)
    why = agent.work()
    if why:
        with contextlib.suppress(OSError):  # it may lead nowhere by now
            os.write(2, f"{why}\n".encode())
    agent.end()
    os._exit(0)  # threads may be waiting for a link


if __name__ == "__main__":
    main()
