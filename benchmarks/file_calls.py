"""Calls that a command and all that it starts make of the kernel, live: strace prints them, `following` reads them, and
knows of each process who it is and where it works at that moment.

strace waits where its pipe is full, so that a caller who looks a path up sees it as it was about thirty calls ago."""

import contextlib
import fcntl
import os
import re
import select
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

F_SETPIPE_SZ = 1031  # linux/fcntl.h
TRACED = (
    "%file,%process,fchdir,setuid,setreuid,setresuid,setfsuid,unshare,setns,openat2,bind,connect"  # strace(1), -e trace
)
STRACE = (
    "strace", "-f", "-q", "--seccomp-bpf", "-y", "-s", "4096", "-e", "abbrev=!execve,execveat", "-e", "signal=none",
    "-e", f"trace={TRACED}",
)  # fmt: skip
LINE = re.compile(r"(?P<pid>\d+) +(?P<rest>.*)", re.S)
ENTERED = re.compile(r"(?P<name>\w+)\((?P<arguments>.*)", re.S)
RESUMED = re.compile(r"<\.\.\. (?P<name>\w+) resumed>(?P<arguments>.*)", re.S)
RESULT = re.compile(r"\) += (?P<result>-?\d+|\?|0x[0-9a-f]+)(?P<more>.*)$", re.S)
BEGINS_WITHIN_S = 30.0
UNFINISHED = " <unfinished ...>"
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"(?:\.\.\.)?|<(?:[^>\\]|\\.)*>|[\[{(]|[\]})]|,|[^"<\[{(\]}),]+', re.S)
ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-f]{2})|(.))")
NAMED = {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "f": "\f"}
STARTING = ("clone", "clone3", "fork", "vfork")


@dataclass(frozen=True)
class Process:
    """uid: as whom it opens files. apart: whether it may see other mounts than we do."""

    pid: int
    uid: int
    cwd: str
    program: str
    apart: bool = False


@dataclass(frozen=True)
class Call:
    """by: as it was when the call was made. arguments: as strace prints them. failed: errno's name, "" where it did
    not."""

    by: Process
    name: str
    arguments: tuple[str, ...]
    result: str
    failed: str


@dataclass
class Processes:
    """Who is who, as the calls tell."""

    known: dict[int, Process] = field(default_factory=dict)
    unfinished: dict[int, tuple[str, str]] = field(default_factory=dict)

    def of(self, pid: int) -> Process:
        """A new process comes from one whose call to start it may not have been printed yet."""
        if pid not in self.known:
            starting = [other for other, (name, _) in self.unfinished.items() if name in STARTING]
            parent = starting[0] if len(starting) == 1 else _parent(pid)
            begun = self.known.get(parent, next(iter(self.known.values())))
            self.known[pid] = replace(begun, pid=pid)
        return self.known[pid]

    def take(self, call: Call) -> None:
        """What the call has changed."""
        pid = call.by.pid
        if call.failed:
            return
        if call.name in STARTING and call.result.isdigit() and int(call.result) > 0:
            apart = call.by.apart or "CLONE_NEWNS" in " ".join(call.arguments)
            self.known.setdefault(int(call.result), replace(call.by, pid=int(call.result), apart=apart))
        elif call.name in ("unshare", "setns"):
            self.known[pid] = replace(call.by, apart=True)
        elif call.name in ("setuid", "setfsuid", "setreuid", "setresuid"):
            given = call.arguments[0 if len(call.arguments) == 1 else 1]
            if given.isdigit():
                self.known[pid] = replace(call.by, uid=int(given))
        elif call.name == "chdir":
            self._go(call, os.path.normpath(os.path.join(call.by.cwd, text(call.arguments[0]))))
        elif call.name == "fchdir":
            self._go(call, held(call.arguments[0]))
        elif call.name == "execve":
            self.known[pid] = replace(call.by, program=named(texts(call.arguments[1])))

    def _go(self, call: Call, folder: str) -> None:
        """Threads of a process work in one folder; those that have a different one are processes started from it."""
        for pid in _threads(call.by.pid) | {call.by.pid}:
            if pid in self.known:
                self.known[pid] = replace(self.known[pid], cwd=folder)


def _parent(pid: int) -> int:
    """Of a thread the process that it is of."""
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
        fields = dict(line.split(":\t", 1) for line in lines if line.startswith(("Tgid:", "PPid:")))
        return int(fields["Tgid"]) if int(fields["Tgid"]) != pid else int(fields["PPid"])
    return 0


def _threads(pid: int) -> set[int]:
    with contextlib.suppress(OSError):
        return {int(name) for name in os.listdir(f"/proc/{pid}/task")}
    return set()


def named(argv: Sequence[str]) -> str:
    """A command in few words: of Python's the module or the script."""
    words = [os.path.basename(argv[0])] if argv else ["?"]
    if words[0].startswith("python"):
        options = iter(argv[1:])
        for option in options:
            if option.startswith("-") and option[1:] in ("m", "c"):
                return f"{words[0]} {option} {next(options, '')[:60]}"
            if not option.startswith("-"):
                return f"{words[0]} {os.path.basename(option)}"
    return words[0]


def split(arguments: str) -> tuple[str, ...]:
    """At the commas that stand outside of texts, paths of descriptors and brackets."""
    found, depth, now = [], 0, ""
    for token in TOKEN.findall(arguments):
        if token in ("[", "{", "("):
            depth += 1
        elif token in ("]", "}", ")"):
            depth -= 1
        if token == "," and depth == 0:
            found.append(now.strip())
            now = ""
        else:
            now += token
    return tuple([*found, now.strip()] if now.strip() else found)


def text(argument: str) -> str:
    """A text that strace has quoted; bytes that are no UTF-8 as `os.fsdecode` has them."""
    return _plain(argument.removesuffix("...").strip('"')) if argument.startswith('"') else ""


def texts(argument: str) -> list[str]:
    """Of a list of texts."""
    return [text(word) for word in split(argument.strip("[]"))]


def held(argument: str) -> str:
    """The path of a descriptor, "" where it has none."""
    _, opened, path = argument.partition("<")
    return _plain(path.rpartition(">")[0]) if opened else ""


def _plain(quoted: str) -> str:
    def put(match: re.Match[str]) -> bytes:
        octal, hexadecimal, letter = match.groups()
        if octal is not None:
            return bytes([int(octal, 8) & 255])
        return bytes([int(hexadecimal, 16)]) if hexadecimal else NAMED.get(letter, letter).encode()

    found, at = b"", 0
    for match in ESCAPE.finditer(quoted):
        found += quoted[at : match.start()].encode() + put(match)
        at = match.end()
    return os.fsdecode(found + quoted[at:].encode())


def following(lines: Iterator[str], first: Process) -> Iterator[Call]:
    """The calls, each once it has ended; what `first` is at its start is known. An execve comes as it begins, too: with
    "" as its result."""
    processes = Processes({first.pid: first})
    for line in lines:
        match = LINE.fullmatch(line.rstrip("\n"))
        if match is None:
            continue
        pid, rest = int(match["pid"]), match["rest"]
        if rest.startswith(("+++", "---")):
            if rest.startswith(("+++ exited", "+++ killed")):
                processes.unfinished.pop(pid, None)
                processes.known.pop(pid, None)
            continue
        by = processes.of(pid)
        if (resumed := RESUMED.match(rest)) is not None:
            name, before = processes.unfinished.pop(pid, (resumed["name"], ""))
            whole = before + resumed["arguments"]
        elif (entered := ENTERED.match(rest)) is not None:
            name, whole = entered["name"], entered["arguments"]
            if whole.endswith(UNFINISHED):
                processes.unfinished[pid] = name, whole.removesuffix(UNFINISHED)
                continue
        else:
            continue
        ends = list(RESULT.finditer(whole))
        if not ends:
            continue
        end = ends[-1]
        failed = end["more"].split()[0] if end["result"] == "-1" and end["more"].split() else ""
        call = Call(by, name, split(whole[: end.start()]), end["result"], failed)
        yield call
        processes.take(call)


@contextlib.contextmanager
def traced(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdout: int | None = None, stderr: int | None = None
) -> Iterator[tuple[subprocess.Popen[bytes], Iterator[Call]]]:
    """The command under strace, and its calls. Whoever does not read them stops it."""
    with tempfile.TemporaryDirectory(prefix="lf-trace-", dir="/var/tmp") as folder:
        pipe = f"{folder}/calls"
        os.mkfifo(pipe)
        reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        fcntl.fcntl(reading, F_SETPIPE_SZ, os.sysconf("SC_PAGESIZE"))
        os.set_blocking(reading, True)
        process = subprocess.Popen(
            [*STRACE, "-o", pipe, *command], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
            start_new_session=True,
        )  # fmt: skip
        with process, open(reading, encoding="utf-8", errors="surrogateescape") as lines:
            try:
                begun = select.poll()
                begun.register(reading, select.POLLIN)
                if not begun.poll(BEGINS_WITHIN_S * 1000):
                    raise TimeoutError(f"strace has printed no call within {BEGINS_WITHIN_S:.0f} s")
                yield process, _calls(lines, process, cwd)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)  # what the command has started ends with it
                raise


def _calls(lines: Iterator[str], process: subprocess.Popen[bytes], cwd: Path) -> Iterator[Call]:
    first = next(lines, "")
    pid = int(first.split()[0]) if first.split() else process.pid
    yield from following(_again(first, lines), Process(pid, os.geteuid(), str(cwd), "loadframe"))


def _again(first: str, lines: Iterator[str]) -> Iterator[str]:
    yield first
    yield from lines
