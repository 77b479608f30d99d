"""Whether the stage that limits is right where it is known: python benchmarks/held_out_metadata.py [batch disk relay]

Three pipelines of file metadata into a database, each with one planted fault: batches of one entry, so that every entry
is a transaction; one scan thread on a disk that is allowed 100 reads a second, with nothing of the tree in memory; and
a MariaDB behind a relay that adds 5 ms to every request. Measured only, nothing is tried: the finding must come from
what the stages print. Ends with 1 where one is wrong. It takes a minute and a half.
"""

from __future__ import annotations

import argparse
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import foreign
import loadframe
from loadframe.errors import UserError
from loadframe.model import Investigation

STUDY = """\
[study]
name = "{name}"
question = "Which stage limits?"
[target]
kind = "{kind}"
{target}
[workload]
kind = "metadata-index"
[workload.options]
entries = {entries}
batch = {batch}
cold = {cold}
[load]
axis = "scan_threads"
levels = {levels}
[measure]
warmup = "500ms"
window = "1500ms"
blocks = {{ min = 2, max = 2 }}
budget = "25s"
profile = "off"
{cage}
"""
DELAY_S = 0.005
SETTINGS = '[target.settings]\njournal_mode = "wal"\nsynchronous = "{synchronous}"'


@dataclass(frozen=True, slots=True)
class Variant:
    """right: the findings that are. The disk is read by the stage that lists directories and by the one that looks
    entries up: which of them waits is the file system's choice (ext4 reads the inodes of 500 entries at once)."""

    about: str
    right: tuple[str, ...]
    entries: int
    batch: int = 1000
    cold: bool = False
    levels: tuple[int, ...] = (1, 2)
    cage: str = ""
    synchronous: str = "NORMAL"


VARIANTS = {
    "batch": Variant("batches of one entry", ("pipeline.DB_APPLY",), entries=20_000, batch=1),
    "disk": Variant(
        "one scan thread, a disk of 100 reads a second", ("pipeline.SCAN", "pipeline.GET_INFO_FS"), entries=60_000,
        cold=True, levels=(1,), cage="[cage]\nread_iops = 100", synchronous="OFF",
    ),
    "relay": Variant("a database 5 ms away", ("pipeline.DB_APPLY",), entries=20_000, batch=20),
}  # fmt: skip


def _pass_on(source: socket.socket, to: socket.socket, delay_s: float) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            time.sleep(delay_s)
            to.sendall(data)
    for end in (source, to):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def relay(place: Path, to: str) -> Iterator[None]:
    """A socket whose requests reach `to` DELAY_S later; answers come at once."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place))
        place.chmod(0o777)  # the driver is another user
        listening.listen(64)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listening.accept()
                    server = socket.socket(socket.AF_UNIX)
                    server.connect(to)
                    for pair in ((client, server, DELAY_S), (server, client, 0.0)):
                        threading.Thread(target=_pass_on, args=pair, daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)


def measured(name: str, variant: Variant, target: str, kind: str, folder: Path) -> Investigation:
    """What a measured sweep alone says of it."""
    path = folder / f"{name}.toml"
    text = STUDY.format(
        name=name, kind=kind, target=target, entries=variant.entries, batch=variant.batch,
        cold=str(variant.cold).lower(), levels=list(variant.levels), cage=variant.cage,
    )  # fmt: skip
    path.write_text(text)
    run = loadframe.measure(loadframe.load_study(path), folder / "runs").run
    return loadframe.conclude(loadframe.open_run(run))


def found(name: str, variant: Variant) -> Investigation:
    """On a server of its own."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        folder = Path(place)
        folder.chmod(0o755)
        if name != "relay":
            return measured(name, variant, SETTINGS.format(synchronous=variant.synchronous), "sqlite", folder)
        with foreign.running("mariadb") as server, relay(folder / "relay.sock", server.address):
            target = f'attach = "{folder / "relay.sock"}"\noption_file = "{server.option_file}"'
            return measured(name, variant, target, "mariadb", folder)


def main() -> int:
    """Print a row for each; 1 where one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(VARIANTS), metavar="NAME")
    wrong = 0
    for name in parser.parse_args().names:
        variant, began = VARIANTS[name], time.monotonic()
        try:
            said = [one.id for one in found(name, variant).rounds[0].findings if one.id.startswith("pipeline.")]
        except UserError as error:
            said = [f"failed: {error}"]
        right = bool(said) and said[0] in variant.right
        wrong += not right
        words = ", ".join(said) or "no stage"
        print(
            f"{'right' if right else 'WRONG'}  {variant.about}: {words} ({time.monotonic() - began:.0f} s)", flush=True
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
