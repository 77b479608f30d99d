"""Mean numbers of threads in each class of waits in a window. The scheduler counts those that ran, and that were
runnable without a CPU (schedstat). In what the others sleep the census shows, for some threads at each tick."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean

from loadframe.recording import procfs
from loadframe.recording.derivation import Metrics, nearest, texts_of
from loadframe.recording.frames import Tick
from loadframe.recording.peer_metrics import REST, Connections
from loadframe.recording.process_metrics import TaskTexts, parse_tasks
from loadframe.recording.process_window import ProcessInWindow, sum_over_threads
from loadframe.recording.socket_rows import OpenSocket
from loadframe.recording.wait_classes import (
    CALLS,
    CLASSES,
    Call,
    Role,
    WaitClass,
    by_descriptors,
    by_function,
    descriptors_of,
)

CALLS_OF_THREADS = "task-syscall"
Place = tuple[WaitClass, str]


def wait_metrics(processes: Sequence[ProcessInWindow], connections: Connections, machine: str) -> Metrics:
    """machine: as uname(2) names it. Nothing if no thread's state was recorded; no waits for peers without a look at
    them."""
    together: dict[Place, float] = {}
    for process in processes:
        waits = _of_process(process, connections, CALLS.get(machine, {}))
        if waits is None:
            return {}
        together |= {place: together.get(place, 0.0) + count for place, count in waits.items()}
    if not together:
        return {}
    metrics: Metrics = {f"waits.{wait}": 0.0 for wait in CLASSES}
    named = connections.named()
    for (wait, peer), count in together.items():
        metrics[f"waits.{wait}"] += count
        if peer and connections.looks:
            name = f"peer.{peer if peer in named else REST}.waiting"
            metrics[name] = metrics.get(name, 0.0) + count
    return metrics


def _of_process(
    process: ProcessInWindow, connections: Connections, calls: Mapping[int, Call]
) -> dict[Place, float] | None:
    looked = [tick for tick in process.window.ticks if tick.entries.get("tasks")]
    if not looked:  # a short window: it had no turn
        looked = [tick for tick in process.held.ticks[-1:] if tick.entries.get("tasks")]
    if not looked:
        return None
    threads = process.share * fmean(map(procfs.parse_count, texts_of(looked, "threads") or [b"0"]))
    states, places = _census(process, connections, calls, looked)
    running, runnable = _awake(process, threads, states)
    asleep = max(0.0, threads - running - runnable)
    blocked = states.total() - states["R"]
    disk = asleep * states["D"] / blocked if blocked else 0.0
    waits: dict[Place, float] = {("running", ""): running, ("runnable", ""): runnable, ("disk", ""): disk}
    if not places:
        places["unknown", ""] = 1
    for place, count in places.items():
        waits[place] = waits.get(place, 0.0) + (asleep - disk) * count / places.total()
    return waits


def _awake(process: ProcessInWindow, threads: float, states: Counter[str]) -> tuple[float, float]:
    """Threads that ran, and that waited for a CPU. Without schedstat the census gives their sum."""
    rates = sum_over_threads([process], lambda process: process.cpu_rates)
    if rates is not None:
        running = min(rates[0], threads)
        return running, min(rates[1], threads - running)
    either = threads * states["R"] / max(1, states.total())
    running = min(process.rates.get("cpu.cores", either), threads)
    return running, max(0.0, either - running)


def _census(
    process: ProcessInWindow, connections: Connections, calls: Mapping[int, Call], looked: Sequence[Tick]
) -> tuple[Counter[str], Counter[Place]]:
    states: Counter[str] = Counter()
    places: Counter[Place] = Counter()
    looks = connections.by_process.get(process.pid, [])
    times = [at_s for at_s, _ in looks]
    opened = [{socket.descriptor: socket for socket in sockets} for _, sockets in looks]
    for tick in looked:
        now = opened[nearest(times, tick.monotonic_s)] if opened else None
        rows = {row.thread: row for row in parse_tasks(tick.entries["tasks"])}
        states.update(row.state for row in rows.values())
        asked = {row.thread: row for row in parse_tasks(tick.entries.get(CALLS_OF_THREADS, b""))}
        for thread, row in rows.items():
            if row.state == "S" and (place := _place(row, asked.get(thread), calls, connections, now)):
                places[place] += 1
    return states, places


def _place(
    row: TaskTexts,
    asked: TaskTexts | None,
    calls: Mapping[int, Call],
    connections: Connections,
    opened: Mapping[int, OpenSocket] | None,
) -> Place | None:
    """None if unknown. opened: by descriptor, of the look nearest to the moment."""
    number, *rest = asked.stat.split() if asked is not None else [b""]
    if number == b"running":  # it was woken between the two readings
        return None
    call = calls.get(int(number)) if number.isdigit() else None
    if asked is None or call is None:
        wait = by_function(row.wchan.decode("ascii", "replace"))
        return (wait, "") if wait != "unknown" else ("other", "") if number else None
    if call.wait is not None:
        return call.wait, ""
    arguments = [procfs.parse_hexadecimal(word, "a system call") for word in rest[:1]]
    numbers = descriptors_of(call, arguments, polled=asked.schedstat)  # the row's second text
    sockets = [] if opened is None else [opened.get(number) for number in numbers]
    roles: list[Role] = ["none" if socket is None else connections.role(socket) for socket in sockets]
    wait = by_descriptors(call.by, roles or None)
    peers = {connections.peer(socket) for socket, role in zip(sockets, roles, strict=True) if socket and role == "peer"}
    return wait, peers.pop() if wait == "network" and len(peers) == 1 else ""
