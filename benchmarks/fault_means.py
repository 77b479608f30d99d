"""What faults.py hits a command with: disks that fill, stop or go, clocks that jump, servers that lie, networks that
are cut. Each means is undone by the Scene's stack."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from fault_scene import Scene, send, state_of
from loadframe.cages.groups import hierarchies

EXT4_IOC_SHUTDOWN = 0x8004587D  # _IOR('X', 125, __u32); linux/ext4.h
WITHOUT_FLUSHING = struct.pack("I", 2)  # EXT4_GOING_FLAGS_NOLOGFLUSH
MIB = 1 << 20
PACE_S = 0.01


def run(*command: str | Path) -> str:
    """A program of the system, to its end; what it printed. OSError with what it complained of."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{command[0]}: {done.stderr.strip()}")
    return done.stdout


# --- disks ---


def small_disk(scene: Scene, place: str, mib: int) -> None:
    """A file system in `mib` MiB of memory at a place; small enough to be filled."""
    run("mount", "-t", "tmpfs", "-o", f"size={mib}m,mode=755", "faults", scene.place(place))
    scene.stack.callback(run, "umount", "-l", scene.place(place))


def own_disk(scene: Scene, place: str, mib: int) -> str:
    """A disk of its own in a file, with ext4; the name of the device."""
    image = scene.folder / f"{place}.img"
    with image.open("wb") as file:
        file.truncate(mib * MIB)
    run("mkfs.ext4", "-q", "-E", "lazy_itable_init=1", image)
    run("mount", "-o", "loop", image, scene.place(place))
    scene.stack.callback(run, "umount", "-l", scene.place(place))
    (scene.place(place) / "lost+found").rmdir()
    return next(line.split()[0] for line in Path("/proc/self/mounts").read_text().splitlines()
                if line.split()[1] == str(scene.place(place)))  # fmt: skip


def fill(scene: Scene, place: str) -> None:
    """Not a byte is free any more."""
    with (scene.place(place) / "filler").open("wb", buffering=0) as file:
        for size in (MIB, 4096, 1):
            with suppress(OSError):
                while True:
                    file.write(b"x" * size)


def empty(scene: Scene, place: str) -> None:
    (scene.place(place) / "filler").unlink(missing_ok=True)


def lose(scene: Scene, place: str) -> None:
    """As if the disk was pulled out: what is not on it now never will be."""
    descriptor = os.open(scene.place(place), os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, EXT4_IOC_SHUTDOWN, WITHOUT_FLUSHING)
    finally:
        os.close(descriptor)


def find_again(scene: Scene, place: str) -> None:
    """The disk is back, with what was on it."""
    run("umount", "-l", scene.place(place))
    run("mount", "-o", "loop", scene.folder / f"{place}.img", scene.place(place))


def protect(scene: Scene, place: str) -> None:
    """Nothing can be written there any more."""
    where = scene.place(place)
    run("mount", "--bind", where, where)
    scene.stack.callback(unprotect, scene, place)
    run("mount", "-o", "remount,bind,ro", where)


def unprotect(scene: Scene, place: str) -> None:
    where = str(scene.place(place))
    if sum(line.split()[1] == where for line in Path("/proc/self/mounts").read_text().splitlines()):
        with suppress(OSError):
            run("umount", "-l", where)


def slow_disk(scene: Scene, place: str, mib: int, writes_per_s: int) -> None:
    """A disk of its own that takes so few writes."""
    device = own_disk(scene, place, mib)
    numbers = Path(device).stat().st_rdev
    name = f"{os.major(numbers)}:{os.minor(numbers)}"
    limit = throttle_file()
    assert limit is not None
    limit.write_text(f"{name} {writes_per_s}")
    scene.stack.callback(limit.write_text, f"{name} 0")


def throttle_file() -> Path | None:
    """Where the writes of all processes to a device can be limited; None where this machine has no such file."""
    tops = [each.top for each in hierarchies() if each.version == 1 and "io" in each.controllers]
    files = [top / "blkio.throttle.write_iops_device" for top in tops]
    return next((file for file in files if file.exists()), None)


# --- processes ---


def stutter(scene: Scene, pids: Callable[[], Iterable[int]], stopped_s: float, running_s: float) -> None:
    """From now on these run only now and then."""
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            found = list(pids())
            send(found, signal.SIGSTOP)
            over.wait(stopped_s)
            send(found, signal.SIGCONT)
            over.wait(running_s)

    thread = threading.Thread(target=work)
    thread.start()
    scene.stack.callback(thread.join)
    scene.stack.callback(over.set)


HOG = """
import os, sys, time
open("/proc/self/oom_score_adj", "w").write("-1000")
open(sys.argv[1] + "/cgroup.procs", "w").write("0")
kept = []
while os.getppid() == int(sys.argv[2]):
    kept.append(bytearray(b"x" * (4 << 20)))
    time.sleep(0.002)
"""


def exhaust(scene: Scene) -> None:
    """The server's cage is full of memory that the kernel may not take back, so it ends the server."""
    folders = [Path(each) for record in scene.records() for each in record["groups"]]
    cage = next(each for each in folders if "driver" not in each.name and (each / "memory.limit_in_bytes").exists())
    servers = scene.servers()
    for pid in servers:
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000")  # the first whom the kernel ends
    hog = subprocess.Popen([sys.executable, "-c", HOG, str(cage), str(os.getpid())])
    scene._own.add(hog.pid)
    until = time.monotonic() + 20
    try:
        while all(state_of(pid) not in "ZX" for pid in servers) and time.monotonic() < until and hog.poll() is None:
            time.sleep(PACE_S)
    finally:
        hog.kill()
        hog.wait()


def few_processes(scene: Scene, most: int) -> None:
    """The command, and what it starts, may be no more than `most` processes and threads."""
    place = next((each for each in hierarchies() if "pids" in each.controllers), None)
    assert place is not None
    group = place.own / f"faults-{os.getpid()}"
    group.mkdir()
    scene.stack.callback(_remove_group, group)
    (group / "pids.max").write_text(str(most))
    scene.prefix += ["sh", "-c", f'echo 0 > {group}/cgroup.procs; exec "$@"', "sh"]


def _remove_group(group: Path) -> None:
    until = time.monotonic() + 5
    while time.monotonic() < until:
        with suppress(OSError):
            group.rmdir()
            return
        time.sleep(PACE_S)


# --- clocks ---

CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static const volatile double *told;   /* seconds to add, seconds to add per second, from that CLOCK_MONOTONIC on */
static int (*real)(clockid_t, struct timespec *);
__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("FAULTS_CLOCK");
    int descriptor = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    if (descriptor < 0) return;
    void *place = mmap(0, 24, PROT_READ, MAP_SHARED, descriptor, 0);
    if (place != MAP_FAILED) told = place;
    close(descriptor);
}
int clock_gettime(clockid_t which, struct timespec *at) {
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(which, at);
    if (code || !told || (which != CLOCK_REALTIME && which != CLOCK_REALTIME_COARSE)) return code;
    struct timespec now;
    real(CLOCK_MONOTONIC, &now);
    double more = told[0] + told[1] * (now.tv_sec + now.tv_nsec / 1e9 - told[2]);
    double sum = at->tv_nsec / 1e9 + more;
    long whole = (long)sum - (sum < 0);
    at->tv_sec += whole;
    at->tv_nsec = (long)((sum - whole) * 1e9);
    if (at->tv_nsec > 999999999) at->tv_nsec = 999999999;
    return 0;
}
int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"""
"""What a program asks for the time of day; CLOCK_MONOTONIC stays as it is, as it does where a clock is set."""


def injected_clock(scene: Scene) -> Callable[[float, float], None]:
    """Gives the command, and all that it starts, a time of day of its own: sets it forward by seconds, and by seconds
    per second from then on."""
    source, library, told = (scene.folder / f"clock.{end}" for end in ("c", "so", "told"))
    source.write_text(CLOCK)
    run("cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl")
    told.write_bytes(struct.pack("3d", 0.0, 0.0, 0.0))
    for path in (library, told):
        path.chmod(0o755)
    scene.folder.chmod(0o755)
    scene.environment |= {"LD_PRELOAD": str(library), "FAULTS_CLOCK": str(told)}

    def change(seconds: float, per_second: float) -> None:
        with told.open("r+b") as file:
            file.write(struct.pack("3d", seconds, per_second, time.monotonic()))

    return change


# --- what answers by network ---


class Site:
    """A web server of ours with one page. honest: set to False, it answers what is not the page: another status,
    another length, fewer bytes than it says."""

    PAGE = b"<html>" + b"page " * 400 + b"</html>"

    def __init__(self) -> None:
        self.honest = True
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            count = 0

            def do_GET(self) -> None:
                Handler.count += 1
                kind = 0 if site.honest else Handler.count % 4
                self.send_response(500 if kind == 1 else 200)
                self.send_header("Content-Length", str(len(Site.PAGE) + (1000 if kind == 3 else 0)))
                self.end_headers()
                self.wfile.write(Site.PAGE[:-20] + b"another ending here." if kind == 2 else Site.PAGE)
                if kind == 3:
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                """Nothing: there would be a line for each request."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_: object) -> None:
                """A driver that is killed breaks its connections."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Network:
    """A way to a port of 127.0.0.1 that can be cut, broken, or made slow. port: where it begins."""

    def __init__(self, to: int) -> None:
        self._to = to
        self.way = "open"
        self._ends: set[socket.socket] = set()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = int(self._listening.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Nothing arrives any more, and nothing says so."""
        self.way = "cut"

    def slow(self) -> None:
        """20 ms each way, and 200 KiB/s for each connection."""
        self.way = "slow"

    def broken(self) -> None:
        """All connections are reset, and none can be made."""
        self.way = "broken"
        self._listening.close()
        for end in tuple(self._ends):
            _reset(end)

    def close(self) -> None:
        self.way = "broken"
        for end in (self._listening, *self._ends):
            with suppress(OSError):
                end.close()

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._listening.accept()
            except OSError:
                return
            try:
                there = socket.create_connection(("127.0.0.1", self._to), timeout=5)
            except OSError:
                here.close()
                continue
            there.settimeout(None)
            self._ends |= {here, there}
            for ends in ((here, there), (there, here)):
                threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(4096):
                while self.way == "cut":
                    time.sleep(PACE_S)
                if self.way == "slow":
                    time.sleep(0.02 + len(data) / 200_000)
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def _reset(end: socket.socket) -> None:
    with suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.close()
