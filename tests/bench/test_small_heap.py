"""A Java service whose heap is too small dies of a load: the answer has that load, and the heap that holds it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import loadframe
from loadframe.reporting import answers
from loadframe.study import parse
from readable import readable

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(shutil.which("javac") is None, reason="there is no Java here"),
]

HOLDING = """
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

/** Each request needs 4 MiB for 20 ms. */
public class Holding {
    public static void main(String[] arguments) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])), 512);
        server.createContext("/", exchange -> {
            byte[] page = new byte[4 << 20];
            try { Thread.sleep(20); } catch (InterruptedException ended) { return; }
            page[page.length - 1] = '!';
            exchange.sendResponseHeaders(200, 1);
            try (var out = exchange.getResponseBody()) { out.write(page, page.length - 1, 1); }
        });
        server.setExecutor(Executors.newFixedThreadPool(32));
        server.start();
    }
}
"""
STUDY = """
[study]
name = "small-heap"
question = "What does it take?"
[target]
kind = "service"
command = {command}
[target.settings]
heap_mb = 24
[target.setting.heap_mb]
values = [24, 256]
apply = "argument"
[load]
axis = "concurrency"
levels = [1, 2, 16]
[workload]
kind = "http"
[measure]
warmup = "200ms"
window = "500ms"
blocks = {{ min = 2, max = 3 }}
budget = "40s"
profile = "off"
"""


@pytest.mark.long
def test_a_heap_that_is_too_small_for_a_load_is_raised_and_holds_it(tmp_path: Path) -> None:
    """Sixteen requests need 64 MiB; below that load a heap of 24 MiB is enough, and a larger one gives nothing."""
    (tmp_path / "Holding.java").write_text(HOLDING)
    source = readable(tmp_path / "Holding.java")
    subprocess.run(["javac", "-d", source.parent, source], check=True, timeout=120)
    dies = ("-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError", "-Dsun.net.httpserver.nodelay=true")
    command = ["java", "-Xmx{heap_mb}m", *dies, "-cp", str(source.parent), "Holding", "{port}"]
    found = loadframe.investigate(parse(STUDY.format(command=json.dumps(command))), tmp_path / "runs")
    said = answers.answer(found)
    assert found.stop is not None, said
    assert (found.stop.level, found.stop.treatment, found.stop.died) == (16.0, "A", "exit status 3")
    assert found.outcome.kind == "gained", said
    (change,) = found.variants[-1].changes
    assert (change.setting, change.after) == ("heap_mb", 256)
    assert said.startswith("At 16 connections the service died (exit status 3)")
    assert "Set heap_mb = 256" in said
    assert "With that it holds 16 connections: " in said
    assert all(gain.load != 16 for variant in found.variants for gain in variant.levels), "no ratio to nothing"
    assert loadframe.conclude(loadframe.open_run(Path(found.run))).answer == found, "the same from the run folder"
