"""The files that fit Loadframe into other programs. The dashboard in docs/grafana: Grafana's own types know all of it,
and it asks for nothing that is not exported. The unit in docs/systemd: systemd takes it, and its command is ours."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from grafana_foundation_sdk.models.prometheus import Dataquery

from loadframe.cli.main import program
from loadframe.experiments.reading import conclude, open_run
from loadframe.model import LoadInterval
from loadframe.reporting.openmetrics import PREFIX
from loadframe_live.openmetrics import samples_of
from loadframe_watch.openmetrics import Seen
from watched_lines import SEEN, Line

ROOT = Path(__file__).parents[2]
DASHBOARDS = ("loadframe.json", "loadframe-watch.json")
UNIT = ROOT / "docs/systemd/loadframe-watch@.service"
LAST = Line("sample", {"load": 4, "throughput": 12.5, "use": {"process.open_files": 0.1}})
SERIES = re.compile(rf"({PREFIX}\w+)(?:\{{(.*?)\}})?")


@pytest.fixture(scope="module", params=DASHBOARDS)
def document(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "docs/grafana" / request.param).read_text())
    return found


def lost(given: Any, kept: Any, place: str = "") -> Iterator[str]:
    """What of a document is not in another one."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for name in given:
            yield from lost(given[name], kept[name], f"{place}.{name}") if name in kept else [f"{place}.{name}"]
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for number, (one, other) in enumerate(zip(given, kept, strict=True)):
            yield from lost(one, other, f"{place}[{number}]")
    elif given != kept:
        yield f"{place}: {given!r} became {kept!r}"


def test_grafana_s_types_know_every_key_of_it(document: dict[str, Any]) -> None:
    register_default_plugins()
    read = Dashboard.from_json(document)
    assert list(lost(document, json.loads(JSONEncoder().encode(read)))) == []
    assert all(isinstance(target, Dataquery) for panel in read.panels or [] for target in panel.targets)


def test_panels_do_not_cover_one_another(document: dict[str, Any]) -> None:
    cells = [
        (x, y)
        for at in (panel["gridPos"] for panel in document["panels"])
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


def test_every_query_asks_for_metrics_and_labels_that_are_exported(document: dict[str, Any]) -> None:
    labels: dict[str, set[str]] = {}
    run = conclude(open_run(ROOT / "tests/data/runs/investigation"))
    knee = LoadInterval(3.0, 2.0, 4.0)
    bent = {name: replace(state, curve=replace(state.curve, knee=knee)) for name, state in run.states.items()}
    watched = Seen()
    for line in (*SEEN, LAST):
        watched.take(line)
    for sample in (*samples_of(replace(run, states=bent)), *watched.samples("shop")):
        labels.setdefault(PREFIX + sample.family, set()).update(sample.labels)
    queries = [target["expr"] for panel in document["panels"] for target in panel["targets"]]
    queries += [var["query"]["query"] for var in document["templating"]["list"] if var["type"] == "query"]
    asked = [found for query in queries for found in SERIES.findall(query)]
    assert len(asked) > 12
    for metric, matchers in asked:
        assert set(re.findall(r"(\w+)=", matchers)) <= labels[metric], metric
    for panel in document["panels"]:
        (metric, _) = SERIES.findall(panel["targets"][0]["expr"])[0]
        for column in re.findall(r"\{\{(\w+)\}\}", panel["targets"][0]["legendFormat"]):
            assert column in labels[metric]
        if panel["type"] == "table":
            assert set(panel["transformations"][0]["options"]["include"]["names"]) - {"Value"} <= labels[metric]


# --- systemd ---


def command_line() -> list[str]:
    """The command that the unit starts, of an instance called shop."""
    (line,) = re.findall(r"^ExecStart=(.*)$", UNIT.read_text(), re.M)
    return shlex.split(line.replace("%i", "shop"))


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    if (analyze := shutil.which("systemd-analyze")) is None:
        pytest.skip("systemd-analyze is not installed")
    here = tmp_path / UNIT.name.replace("@", "@shop")
    here.write_text(
        UNIT.read_text().replace("/usr/local/bin/loadframe", str(Path(sys.executable).with_name("loadframe")))
    )
    checked = subprocess.run([analyze, "verify", "--man=no", here], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_the_unit_starts_a_command_of_ours() -> None:
    path, verb, *arguments = command_line()
    assert Path(path).name == "loadframe"
    command = program().get_command(None, verb)
    given = command.make_context(verb, arguments).params
    assert (str(given["study"]), str(given["folder"])) == ("/etc/loadframe/shop.toml", "/var/lib/loadframe/watch/shop")


def test_the_unit_is_started_again_until_its_service_is_there() -> None:
    """A machine that starts has the watch before the service that it watches."""
    text = UNIT.read_text(encoding="utf-8")
    assert "\nStartLimitIntervalSec=0\n" in text
    assert "\nRestart=on-failure\n" in text


def test_the_unit_keeps_its_folders_where_systemd_makes_them() -> None:
    text = UNIT.read_text()
    (made,) = re.findall(r"^StateDirectory=(.*)$", text, re.M)
    assert Path(command_line()[-1]).parent in [Path("/var/lib") / name for name in made.split()]
    assert "Environment=LOADFRAME_STATE=/var/lib/loadframe/state\n" in text
