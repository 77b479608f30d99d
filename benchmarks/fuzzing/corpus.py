"""Valid input to begin with: the studies, tables, recordings and run folders of the repository."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzzing.mutations import toml_file

ROOT = Path(__file__).resolve().parents[2]
LOADFRAME = Path(sys.executable).with_name("loadframe")
STUDY = """\
[study]
name = "queue"
question = "How many?"
[target]
kind = "sqlite"
[target.settings]
journal_mode = "delete"
[workload]
kind = "job-queue"
[workload.options]
backlog = 50
[load]
axis = "concurrency"
levels = [1, 2]
[measure]
window = "300ms"
blocks = { min = 2, max = 2 }
budget = "5s"
[remedies]
durability = "relax"
[[alternative]]
name = "wal"
target = { settings = { journal_mode = "wal" } }
[[change]]
name = "wal"
target = { settings = { journal_mode = "wal" } }
"""
"""The simplest one."""
ATTACHED = """\
[study]
name = "attached"
question = "How many?"
[target]
kind = "mariadb"
attach = "/run/mysqld/mysqld.sock"
config = "/etc/mysql/mariadb.conf.d/zz.cnf"
restart = ["true"]
option_file = "/nonexistent/my.cnf"
authorised = true
owner = "us"
[target.settings]
table_open_cache = 400
[cage]
cpus = "0"
nice = -5
open_files = 1024
[cage.driver]
cpus = "1"
memory = "512MiB"
[workload]
kind = "oltp"
[load]
axis = "concurrency"
levels = { from = 1, to = 16, count = 4, growth = "geometric" }
[objective.within]
latency_p95_ms = 50
[host.settings]
"vm.swappiness" = 10
[remedies]
allow = ["target", "process", "host"]
[tune]
trials = 3
[tune.settings]
table_open_cache = { from = 100, to = 4000 }
innodb_log_buffer_size = ["16M", "32M"]
"""
URL = """\
[study]
name = "page"
question = "How many?"
[target]
kind = "url"
authorised = true
owner = "us"
[target.settings]
url = "http://127.0.0.1:8080"
paths = "/ /about"
[workload]
kind = "http"
[load]
axis = "rate"
levels = [10, 20]
"""
SHOP = """\
[study]
name = "shop"
question = "How many orders?"
[target]
kind = "url"
[target.settings]
url = "http://127.0.0.1:8080"
[workload]
kind = "http"
think_time = { mean = "500ms", spread = "exponential" }
[workload.options]
writes = true
[[workload.request]]
path = "/items?page=2"
weight = 8
checked = "status"
[[workload.request]]
name = "order"
method = "POST"
path = "/orders"
headers = { Content-Type = "application/json", X-Trace = "1" }
body = '{"item": 7}'
expect = 201
[workload.login]
token = "data.token"
[[workload.login.request]]
method = "POST"
path = "/login"
body = "user=me"
[load]
axis = "concurrency"
levels = [1, 2]
"""
SERVICE = """\
[study]
name = "service"
question = "What limits it?"
[target]
kind = "service"
command = ["app", "--port", "{port}"]
[target.settings]
pool = 4
[target.setting.pool]
values = [4, 8]
apply = "environment"
name = "POOL"
read_back = { json = "http://127.0.0.1:{port}/config", field = "pool" }
[[target.metrics]]
prometheus = "http://127.0.0.1:{port}/metrics"
select = ["pool_in_use"]
requests = ["jobs_total"]
[[target.metrics]]
json = "http://127.0.0.1:9000/stats"
counters = ["done"]
[[target.limit]]
name = "pool"
use = "pool_in_use"
ceiling = "pool_size"
raise = "pool"
loud = true
[[target.limit]]
name = "queue"
use = "queued"
ceiling = 100.5
title = "the queue"
[workload]
kind = "http"
[load]
axis = "concurrency"
levels = [1, 2]
"""
CURVES = (
    "load,throughput\n1,100\n2,190\n4,350\n8,500\n16,480\n32,300\n",
    "load,throughput,latency_p95_ms\n1,100,10\n1,98,11\n2,190,11\n2,195,10\n4,350,12\n4,340,13\n8,500,20\n8,510,19\n",
    "load,throughput,latency_p95_ms,util.cpu,servers.cpu,util.disk\n1,100,10,0.1,2,0.05\n2,198,10,0.2,2,0.1\n"
    "4,390,11,0.4,2,0.2\n6,570,12,0.6,2,0.31\n",
    "throughput,load\n0,1\n0,2\n0,3\n",
)
SAMPLES = (
    "value\n" + "".join(f"{100 + at % 7}\n" for at in range(30)),
    "value\n" + "".join(f"{120 + at % 5}\n" for at in range(30)),
    "value,block\n" + "".join(f"{100 + at % 7},b{at % 6}\n" for at in range(30)),
    "block,note,value\n" + "".join(f"b{at % 6},x,{110 + at % 3}\n" for at in range(30)),
    "value\n0\n0\n0\n",
    "value\n1\n",
)
EXPOSITIONS = (
    '# HELP jobs Jobs.\n# TYPE jobs counter\njobs_total{queue="a",worker="1"} 1027\njobs_total{queue="b"} 3.5e2 17\n'
    '# TYPE pool_in_use gauge\npool_in_use 4\n# TYPE sent_bytes summary\nsent_bytes{quantile="0.5"} NaN\n'
    "sent_bytes_sum 100\nsent_bytes_count 2\nuntyped_total 7\n",
    '# TYPE took_seconds histogram\ntook_seconds_bucket{le="0.1"} 1\ntook_seconds_bucket{le="1.0"} 2\n'
    'took_seconds_bucket{le="+Inf"} 3\ntook_seconds_count 3\ntook_seconds_sum 2.55\n'
    '# TYPE build info\nbuild_info{version="1"} 1\n# EOF\n',
    '# TYPE jvm_gc_collection_seconds summary\njvm_gc_collection_seconds_count{gc="G1 Old Generation"} 4.0\n'
    'jvm_gc_collection_seconds_sum{gc="G1 Old Generation"} 0.3\njvm_memory_bytes_max{area="heap"} -1.0\n',
    '{"pool": {"in_use": 3, "size": 4.0, "open": true}, "workers": [{"busy": 1}, {"busy": 0}], "done": 9}',
    "in_use 3\nsize 4\n# a comment\ndone\t5e3\n",
)
OWN_DRIVER = """
[study]
name = "own-driver"
question = "How many?"
[target]
kind = "url"
[target.settings]
url = "http://127.0.0.1:1"
[workload]
kind = "command"
command = ["true", "--fast"]
[workload.options]
loop = "closed"
seed = 3
[load]
axis = "users"
levels = [1, 2]
"""
REQUESTS = """{"zero": 1000.5}
{"end": 1.5, "latency_ms": 12.5, "operation": "order", "ok": true, "bytes": 512}
{"start": 1.25, "latency_ms": 1, "error": "sold out"}
{"intended": 1.0, "end": 2.25, "operation": "search"}
"""
SECONDS = """{"second": 1001, "requests": 15, "errors": 1, "histogram": "HISTOGRAM", "unit": "us", "bytes": 70}
{"second": 1002.0, "length_s": 0.5, "requests": 7, "p50_ms": 1.5, "p95_ms": 3, "operation": "order"}
""".replace("HISTOGRAM", "HISTFAAAACt4nJNpmSzMwMDAywABTFCaEUzOmNZg/wEisJmRTRAIpzKx/WVnAwCU1wbD")
FOLDED = "main;loop;read_[k] 12\nmain;loop 3\nmain;[unknown] 1\n"


@dataclass(frozen=True, slots=True)
class Corpus:
    """What mutations begin with. studies: text and tables. runs: folders. state: files of the state directory by their
    names there, SCRATCH standing for a folder of the input's own."""

    studies: tuple[tuple[str, dict[str, Any]], ...]
    keys: tuple[str, ...]
    samples: tuple[str, ...]
    curves: tuple[str, ...]
    configs: tuple[str, ...]
    option_files: tuple[str, ...]
    profiles: tuple[str, ...]
    access_log: str
    har: str
    drivers: Mapping[str, str]
    expositions: tuple[str, ...]
    change_logs: Mapping[str, bytes]
    proc: Mapping[str, str]
    runs: tuple[Path, ...]
    recordings: tuple[bytes, ...]
    state: Mapping[str, str]


def load() -> Corpus:
    """All of it."""
    data = ROOT / "tests/data"
    readme = re.findall(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    texts = [STUDY, ATTACHED, URL, SHOP, SERVICE, OWN_DRIVER, *readme]
    texts += [path.read_text() for path in sorted(ROOT.glob("cases/*/*.toml")) if path.stem not in ("case", "expected")]
    page = (ROOT / "docs/service.md").read_text()
    texts += re.findall(r"```toml\n(.*?)```", page, re.S)
    texts += [_without_planted(path.read_text()) for path in sorted(ROOT.glob("benchmarks/planted/*.toml"))]
    tables = [(text, tomllib.loads(text)) for text in texts]
    folders = tuple(sorted(path.parent for path in data.glob("runs/*/run.json")))
    return Corpus(
        studies=tuple((text, found) for text, found in tables if "study" in found),
        keys=tuple(sorted({key for _, found in tables for key in _keys(found)} | _settings())),
        samples=SAMPLES,
        curves=(*CURVES, *(path.read_text() for path in sorted(ROOT.glob("benchmarks/surfaces/*.csv")))),
        configs=((ROOT / "extensions/loadframe-ndb/tests/data/story.ini").read_text(),),
        option_files=((ROOT / "extensions/loadframe-ndb/tests/data/story.cnf").read_text(),),
        profiles=((data / "profiles/perf-script.txt").read_text(), FOLDED),
        access_log=(data / "loads/access.log").read_text(),
        har=(data / "loads/shop.har").read_text(),
        drivers=_drivers(data / "drivers/recorded"),
        expositions=EXPOSITIONS,
        change_logs={path.stem: _bytes_of(path) for path in sorted((data / "change-logs").iterdir())},
        proc={
            path.name: path.read_text() for path in sorted((data / "proc").iterdir()) if path.suffix != ".md"
        },
        runs=folders,
        recordings=tuple(path.read_bytes() for folder in folders for path in sorted(folder.glob("raw/*.lfr"))),
        state=_state(),
    )  # fmt: skip


def _bytes_of(path: Path) -> bytes:
    """What was recorded; buffers of the kernel are kept as hexadecimal digits."""
    return bytes.fromhex(path.read_text()) if path.suffix == ".hex" else path.read_bytes()


def _drivers(recorded: Path) -> dict[str, str]:
    """What drivers of the user's own print, by what reads it."""
    report = (recorded / "redis-benchmark-7.0.15.txt").read_text().rpartition("====== GET ======")
    return {
        "requests": REQUESTS,
        "seconds": SECONDS,
        "k6": "".join((recorded / "k6-0.54.0.json").read_text().splitlines(keepends=True)[:40]),
        "jtl": (recorded / "jmeter-5.6.3.csv.jtl").read_text(),
        "redis": report[1] + report[2],
        "memtier": (recorded / "memtier.json").read_text(),
    }


def _without_planted(text: str) -> str:
    """A planted study without what only its benchmark reads."""
    tables = tomllib.loads(text)
    tables.pop("planted", None)
    return toml_file(tables)


def _keys(tables: Mapping[str, Any], above: str = "") -> list[str]:
    nested = [key for name, value in tables.items() if isinstance(value, dict) for key in _keys(value, f"{name}.")]
    return [*(f"{above}{name}" for name in tables), *nested]


def _settings() -> set[str]:
    """Every setting and option that there is, by the key of a study."""
    from loadframe.kinds.registry import KINDS

    return {f"target.settings.{name}" for kind in KINDS.values() for name in kind.catalogue.names()}


def _state() -> dict[str, str]:
    """A lease and a list of changes of commands that were killed, and scores; as they are written."""
    import socket

    from loadframe.host import identity

    owner = {"pid": 999_999, "started_ticks": 1}
    about = {"what": "measuring", "host": socket.gethostname(), "boot": identity.boot_id(), "owner": owner}
    lease = {
        "schema": "loadframe.lease/1", "id": "0123456789ab", **about, "folder": "SCRATCH/loadframe-0123456789ab",
        "run": "SCRATCH/runs/x", "processes": [owner], "groups": ["SCRATCH/loadframe-0123456789ab-target"],
    }  # fmt: skip
    place = {"kind": "host", "root": "SCRATCH/root"}
    change = {
        "place": place, "words": "this machine", "setting": "vm.swappiness", "before": 60, "after": 10, "read_back": 10,
    }  # fmt: skip
    server = {"address": "SCRATCH/no.sock", "option_file": "", "user": "us"}
    places = (
        {
            "kind": "config",
            **server,
            "server": "mariadb",
            "path": "SCRATCH/zz.cnf",
            "restart": '["true"]',
            "words": "x",
        },
        {"kind": "process", "pid": "999999", "started_ticks": "1", "server": "mariadb", "words": "a server"},
        {"kind": "mariadb", **server},
        {"kind": "schema", **server, "server": "postgres"},
    )
    changes = [change, *({**change, "place": other, "setting": "x"} for other in places)]
    standing = {"schema": "loadframe.standing/1", "id": "ba9876543210", **about, "run": "SCRATCH", "changes": changes}
    score = {
        "source": "x.csv", "at": "2026-01-01T00:00:00+00:00",
        "score": {"load": 8.0, "predicted": 510.0, "low": 480.0, "high": 530.0, "actual": 500.0, "inside": True},
    }  # fmt: skip
    return {
        "leases/0123456789ab.json": json.dumps(lease),
        "changes/ba9876543210.json": json.dumps(standing),
        "forecast-scores.jsonl": json.dumps({"schema": "loadframe.score/1", **score}) + "\n",
    }
