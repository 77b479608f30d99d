"""What a watch leaves to a process that lives for a second: `python -P -m loadframe_watch.child TASK ...`.

    fit FOLDER [SINCE_S]   the model of what was observed, as JSON on stdout
    compact FILE           a day that has ended becomes FILE.zst
    post                   an alarm to a webhook; {url, owner, alarm} as JSON on stdin

The process that stays is light because numpy, zstandard and TLS are imported here.
"""

import fcntl
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loadframe.errors import LoadframeError, RecordingError, StudyError, UsageError, UserError
from loadframe.formats.json_text import parse_json, write_json
from loadframe.system.files import Folder, Whose
from loadframe_watch.days import Observed, observed

POSTED_WITHIN_S = 20.0
MOST_ANSWER = 1 << 16
LEVEL = 9
"""Level of zstd: a day of samples every 10 s, 6 MB, takes half a second."""
LARGEST = 256 << 20
"""Bytes of a compacted day; at a sample a second it has 5 MiB."""
ROW_S, FINE_ROW_S, FEW_ROWS = 60.0, 10.0, 120
"""Within the first two hours rows of a minute are too few: jobs added within ten minutes are ten rows."""


def fit(folder: Path, *, every_s: float = ROW_S, since_s: float | None = None) -> dict[str, Any]:
    table = observed(folder, every_s=every_s, since_s=since_s)
    if len(table.time_s) >= FEW_ROWS or every_s <= FINE_ROW_S:
        return fitted(table)
    return fitted(observed(folder, every_s=FINE_ROW_S, since_s=since_s), fine=True)


def fitted(table: Observed, *, fine: bool = False) -> dict[str, Any]:
    """fine: neighbouring rows may be correlated. A use that follows the hour rather than the load gets no load; hours
    in which something else fills it each day are left out."""
    from loadframe_watch.observed.by_the_hour import driver
    from loadframe_watch.saturation_of_rows import bend, of_rows

    use = table.use if fine else {name: _by_load(table, shares) for name, shares in table.use.items()}
    full = {name: of_rows(table.load, shares, fine=fine).at for name, shares in use.items()}
    limits = {
        name: _interval(at)
        for name, at in full.items()
        if at is not None and driver(table.time_s, table.load, table.use[name]) != "hour"
    }
    bent = bend(table.load, table.response_s)
    loads = [load for load in table.load if load is not None]
    return {
        "rows": len(table.time_s),
        "highest_load": max(loads, default=None),
        "limits": limits,
        "bend": None if bent is None else _interval(bent),
    }


def _by_load(table: Observed, shares: Sequence[float | None]) -> Sequence[float | None]:
    """Without what a nightly backup takes."""
    import numpy as np

    from loadframe_watch.observed.by_the_hour import by_the_clock
    from loadframe_watch.saturation_of_rows import FULL

    if not any(share is not None and share >= FULL for share in shares):
        return shares
    columns = (np.array(column, dtype=np.float64) for column in (table.time_s, table.load, shares))
    return [None if away else share for away, share in zip(by_the_clock(*columns), shares, strict=True)]


def _interval(interval: Any) -> dict[str, float]:
    return {"load": interval.load, "low": interval.low, "high": interval.high}


def compact(file: Path) -> None:
    """Append a finished day to FILE.zst, atomically, then remove it. RecordingError for a full disk."""
    import zstandard

    files, packed = Folder(file.parent, Whose.OURS, RecordingError, what="watch folder"), f"{file.name}.zst"
    try:
        source = files.descriptor(file.name)
    except FileNotFoundError:
        return
    try:
        fcntl.flock(source, fcntl.LOCK_EX | fcntl.LOCK_NB)
        whole = io.BytesIO(files.read(packed, LARGEST) if files.exists(packed) else b"")
        whole.seek(0, os.SEEK_END)
        with os.fdopen(source, "rb", closefd=False) as lines:
            zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).copy_stream(lines, whole)
        files.replace(packed, whole.getbuffer(), mode=0o600)
        files.remove(file.name)
    except BlockingIOError:
        return
    except OSError as error:
        raise RecordingError(f"{file} cannot be compacted: {error.strerror}.", remedy="Free some space.") from error
    finally:
        os.close(source)


def post(order: dict[str, Any]) -> None:
    """Send an alarm to the address that was checked, without redirects or proxy. StudyError where it is not allowed,
    UserError where it is not taken."""
    import http.client
    import socket
    import ssl
    from urllib.parse import urlsplit

    from loadframe.connections.address import decide, look_up

    parts = urlsplit(order["url"])
    check_webhook(order["url"], order["owner"])
    host, secure = str(parts.hostname), parts.scheme == "https"
    look_up(host, afresh=True)
    place = decide(host, parts.port or (443 if secure else 80))
    if not place.here and not order["owner"]:
        raise StudyError(f"{host} is not this machine", remedy="Say with --webhook-owner who has authorised it.")
    content = write_json(order["alarm"]).encode()
    connection = http.client.HTTPConnection(host, place.port, timeout=POSTED_WITHIN_S)
    try:
        plain = socket.create_connection((place.number, place.port), timeout=POSTED_WITHIN_S)
        connection.sock = ssl.create_default_context().wrap_socket(plain, server_hostname=host) if secure else plain
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", path, content, {"Content-Type": "application/json", "User-Agent": "loadframe"})
        answer = connection.getresponse()
        answer.read(MOST_ANSWER)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise UserError(f"{host} did not take it: {str(error)[:200]}", remedy="Check that it listens.") from error
    finally:
        connection.close()
    if not 200 <= answer.status < 300:
        raise UserError(f"{host} answered {answer.status}", remedy="Check the webhook's address.")


def check_webhook(url: str, owner: str) -> None:
    """UsageError for an invalid address, one with an account, or another machine's without its owner's consent."""
    from urllib.parse import urlsplit

    from loadframe.connections.address import is_here

    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise UsageError(
            f"--webhook is no address: {error}", remedy="For example http://127.0.0.1:9000/alarm."
        ) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError("--webhook takes http:// or https:// and a host", remedy="Correct it.")
    if parts.username is not None or parts.password is not None:
        raise UsageError("--webhook has an account in its address", remedy="Put a token into {ENV:NAME}.")
    if any(ord(character) < 33 or ord(character) > 126 for character in url):
        raise UsageError("--webhook has characters that no address has", remedy="Write them as %XX.")
    if not is_here(parts.hostname, afresh=True) and not owner.strip():
        raise UsageError(
            f"{parts.hostname} is not this machine, and nothing says that alarms may be sent there",
            remedy='Ask its owner, then add --webhook-owner "who has said so".',
        )


def main(arguments: list[str]) -> int:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    task, *rest = arguments
    try:
        if task == "fit":
            print(write_json(fit(Path(rest[0]), since_s=float(rest[1]) if len(rest) > 1 else None)))
        elif task == "compact":
            compact(Path(rest[0]))
        elif task == "post":
            post(parse_json(sys.stdin.buffer.read(MOST_ANSWER * 16)))
        else:
            print(f"there is no task {task!r}", file=sys.stderr)
            return 1
    except LoadframeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
