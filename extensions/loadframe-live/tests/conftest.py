"""The live page under test: `loadframe serve` as it is installed, over runs of the test's own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import IO

import pytest
from playwright.sync_api import Browser, sync_playwright

from loadframe.host.environment import located

DATA = Path(__file__).resolve().parents[3] / "tests/data/runs"
LOADFRAME = str(Path(sys.executable).with_name("loadframe"))


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Message
    body: bytes


@dataclass(frozen=True)
class Served:
    """A server that answers. folder: its runs."""

    folder: Path
    port: int
    token: str
    process: subprocess.Popen[str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/#token={self.token}"

    def get(self, path: str, *, method: str = "GET", token: str | None = "", **headers: str) -> Answer:
        """An answer. token: None for none, "" for the right one. headers: further ones; `_` stands for `-`."""
        with self.asking(path, method=method, token=token, **headers) as answer:
            return Answer(answer.status, answer.headers, answer.read())

    @contextmanager
    def asking(
        self, path: str, *, method: str = "GET", token: str | None = "", **headers: str
    ) -> Iterator[HTTPResponse]:
        """The same, whose body is still to be read."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            sent["Authorization"] = f"Bearer {token or self.token}"
        with closing(connection):
            connection.request(method, path, headers=sent)
            with connection.getresponse() as answer:
                yield answer


@contextmanager
def serving(folder: Path, stderr: IO[bytes] | None = None) -> Iterator[Served]:
    """`loadframe serve FOLDER`, ended by SIGTERM."""
    command = [LOADFRAME, "serve", str(folder), "--json"]
    environment = {**os.environ, "NO_COLOR": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            said = json.loads(process.stdout.readline())
            yield Served(folder, said["port"], said["token"], process)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=20)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server over one finished run, whose report was written."""
    folder = tmp_path_factory.mktemp("runs")
    shutil.copytree(DATA / "job-queue", folder / "20261101T000000Z-job-queue")
    page = "<!doctype html><title>R</title><h1>The report</h1><script>document.title = 'obeyed'</script>"
    (folder / "20261101T000000Z-job-queue" / "report.html").write_text(page)
    with serving(folder) as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = located("chromium")
    if chromium is None:
        if os.environ.get("LOADFRAME_REQUIRE_SERVERS"):
            pytest.fail("a browser test would be skipped; missing Debian package: chromium")
        pytest.skip("missing Debian package: chromium")
    options = ["--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"]
    with sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=chromium, args=options, chromium_sandbox=os.geteuid() != 0)
        yield browser
        browser.close()
