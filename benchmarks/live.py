"""What the live page costs, and whom it refuses: python benchmarks/live.py [--seconds S] [--viewers N]

A run in progress is made up: a step about every half a second, from the steps of a run that was measured. `loadframe
serve` shows it without a viewer, to one viewer and to N viewers (50), for S seconds each.

1. The time from a finished step to its event, at the viewer that gets it last; and, where Chromium and Playwright are
   installed, to its mark in the chart of a browser. Goal: each within a second.
2. The CPU time of the server per second (1.0 is one core) and its resident memory. Goal: less than 0.05.
3. What is asked wrongly (without the key, with a wrong one, under another Host, from another Origin, outside the runs,
   to change something), and the answer. Goal: each is refused.

Prints one line per goal: met, or missed. Ends with 1 where one was missed.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from itertools import count, cycle
from pathlib import Path

from loadframe.host.environment import located
from loadframe.model import Step
from loadframe.runs.folder import RunFolder
from loadframe.runs.lines import Told

SOURCE = Path(__file__).parents[1] / "tests" / "data" / "runs" / "job-queue"
EVERY_S = 0.47
GOAL_S, GOAL_CORES = 1.0, 0.05
RUN = "20261101T000000Z-job-queue"


class Growing:
    """A run in progress that gets a step when it is asked for one."""

    def __init__(self, runs: Path) -> None:
        source = RunFolder.open(SOURCE)
        self.run = RunFolder.create(runs, "growing")
        self.run.write_record("study.json", "study", source.study())
        for one in source.treatments().values():
            self.run.append_line("treatments.jsonl", "treatment", one)
        self._steps: Iterator[Step] = cycle([step for step in source.steps() if step.counts])
        self._numbers = count(1)

    def step(self) -> float:
        """One more; the time (CLOCK_MONOTONIC) at which it was on the disk."""
        step = replace(next(self._steps), number=next(self._numbers))
        self.run.tell(Told("step", treatment=step.treatment, level=step.level, seconds=EVERY_S, purpose="curve"))
        self.run.append_line("steps.jsonl", "step", step)
        return time.monotonic()


@dataclass(frozen=True)
class Server:
    """`loadframe serve`, which answers."""

    pid: int
    port: int
    token: str
    url: str

    def cpu_s(self) -> float:
        """CPU time so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_bytes(self) -> int:
        """Resident memory now."""
        return int(Path(f"/proc/{self.pid}/statm").read_text(encoding="utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def status(self, path: str, *, method: str = "GET", token: str | None = None, **headers: str) -> int:
        """Of an answer. headers: `_` stands for `-`."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        connection.request(method, path, headers=sent)
        status = connection.getresponse().status
        connection.close()
        return status

    def viewer(self) -> socket.socket:
        """A stream of events, its answer begun."""
        stream = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        request = (
            f"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: Bearer {self.token}\r\n\r\n"
        )
        stream.sendall(request.encode())
        stream.recv(1 << 16)
        stream.setblocking(False)
        return stream


@contextmanager
def serving(runs: Path) -> Iterator[Server]:
    """`loadframe serve` over these runs."""
    command = [str(Path(sys.executable).with_name("loadframe")), "serve", str(runs), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8", errors="replace") as process:
        assert process.stdout is not None
        try:
            said = json.loads(process.stdout.readline())
            yield Server(process.pid, said["port"], said["token"], said["url"])
        finally:
            process.terminate()
            process.wait(20)


def last_arrival(streams: Sequence[socket.socket]) -> float:
    """When the event of a step has come to all of them (CLOCK_MONOTONIC); infinite if it has not within ten seconds."""
    waiting = {stream.fileno(): stream for stream in streams}
    deadline = time.monotonic() + 10
    while waiting:
        ready, _, _ = select.select(list(waiting), [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return float("inf")
        for descriptor in ready:
            with suppress(BlockingIOError):
                if b'"steps": [{' in waiting[descriptor].recv(1 << 20):
                    del waiting[descriptor]
    return time.monotonic()


@dataclass(frozen=True)
class Shown:
    """What it took to show a run to some viewers. latencies_s: of each step; none without viewers."""

    viewers: int
    cores: float
    rss_bytes: int
    latencies_s: tuple[float, ...]


def shown(server: Server, growing: Growing, viewers: int, seconds: float) -> Shown:
    """The run grows, and these viewers watch."""
    latencies = []
    with ExitStack() as stack:
        streams = [stack.enter_context(server.viewer()) for _ in range(viewers)]
        time.sleep(1)  # the first events are behind us
        began, before = time.monotonic(), server.cpu_s()
        while time.monotonic() < began + seconds:
            for stream in streams:
                with suppress(BlockingIOError):
                    stream.recv(1 << 20)
            written = growing.step()
            if streams:
                latencies.append(last_arrival(streams) - written)
            time.sleep(max(0.0, written + EVERY_S - time.monotonic()))
        cores = (server.cpu_s() - before) / (time.monotonic() - began)
    return Shown(viewers, cores, server.rss_bytes(), tuple(latencies))


def in_a_browser(server: Server, growing: Growing, steps: int = 10) -> tuple[float, ...] | None:
    """From a finished step to its mark in the chart; None where there is no browser."""
    chromium = located("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        return None
    if chromium is None:
        return None
    found = []
    with sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=chromium, chromium_sandbox=os.geteuid() != 0)
        page = browser.new_page()
        page.goto(server.url)
        page.locator("a.row .running").click()
        dots = page.locator("figure >> nth=0").locator(".dot")
        dots.first.wait_for()
        for _ in range(steps):
            before = dots.count()
            written = growing.step()
            while dots.count() == before and time.monotonic() < written + 10:
                time.sleep(0.01)
            found.append(time.monotonic() - written)
            time.sleep(EVERY_S)
        browser.close()
    return tuple(found)


def refusals(server: Server) -> list[tuple[str, int, bool]]:
    """What is asked wrongly, the answer, and whether it refuses."""
    key, here = server.token, f"/api/runs/0/{RUN}"
    asked = {
        "no key": server.status("/api/runs"),
        "a wrong key": server.status("/api/runs", token="x" * len(key)),
        "events without a key": server.status("/api/events"),
        "metrics without a key": server.status("/metrics"),
        "another Host": server.status("/api/runs", token=key, Host="evil.example"),
        "the page under another Host": server.status("/", Host="evil.example"),
        "another Origin": server.status("/api/runs", token=key, Origin="http://evil.example"),
        "a cross-site request": server.status("/api/runs", token=key, Sec_Fetch_Site="cross-site"),
        "a folder above": server.status("/api/runs/0/..", token=key),
        "an encoded way out": server.status("/api/runs/0/..%2f..%2fetc", token=key),
        "a link out of the runs": server.status("/api/runs/0/20261102T000000Z-link", token=key),
        "a report without its ticket": server.status(f"/report/{'0' * 64}/0/{RUN}/"),
        "a file of a report without its ticket": server.status(f"/report/{'0' * 64}/0/{RUN}/steps.jsonl"),
        "to change something": server.status(here, token=key, method="POST"),
        "to remove something": server.status(here, token=key, method="DELETE"),
    }
    return [(name, status, 400 <= status < 500) for name, status in asked.items()]


def goal(words: str, met: bool) -> bool:
    print(f"{'met   ' if met else 'MISSED'} {words}")
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--viewers", type=int, default=50)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="loadframe-live-") as name:
        runs = Path(name)
        shutil.copytree(SOURCE, runs / RUN)
        (runs / "20261102T000000Z-link").symlink_to("/etc")
        growing = Growing(runs)
        with serving(runs) as server:
            rows = [shown(server, growing, viewers, options.seconds) for viewers in (0, 1, options.viewers)]
            seen = in_a_browser(server, growing)
            refused = refusals(server)
    print("viewers  CPUs used    memory  step to the last viewer: median  longest")
    for row in rows:
        times = sorted(row.latencies_s)
        told = f"{times[len(times) // 2]:24.2f} s {times[-1]:6.2f} s" if times else ""
        print(f"{row.viewers:7}  {row.cores:9.4f}  {row.rss_bytes / (1 << 20):4.0f} MiB  {told}")
    if seen is not None:
        print(
            f"in Chromium, to the mark in the chart: median {sorted(seen)[len(seen) // 2]:.2f} s, "
            f"longest {max(seen):.2f} s"
        )
    for what, status, _ in refused:
        print(f"{status}  {what}")
    longest = max(max(row.latencies_s, default=0.0) for row in rows)
    most = max(row.cores for row in rows)
    met = [
        goal(f"a step is told to all viewers within {GOAL_S:g} s: {longest:.2f} s", longest <= GOAL_S),
        goal(f"less than {GOAL_CORES:g} of a core: {most:.4f}", most < GOAL_CORES),
        goal(
            f"what is asked wrongly is refused: {sum(ok for *_, ok in refused)} of {len(refused)}",
            all(ok for *_, ok in refused),
        ),
    ]
    if seen is not None:
        met.append(goal(f"a step is in the browser within {GOAL_S:g} s: {max(seen):.2f} s", max(seen) <= GOAL_S))
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
