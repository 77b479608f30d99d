"""The studies that real forecasts are held against: they can be carried out, and what was measured of them is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import forecast_claims
import forecast_library
import forecasts
import loadframe
import server_curves
from alone import of_studies
from loadframe.bench.checking import check_study
from loadframe.errors import CageError, MissingTool, TargetError

LIVE = [one for role in (*forecasts.ROLES, *forecasts.LATER) for one in server_curves.declared(role)]


def named(declaration: Mapping[str, Any]) -> str:
    return server_curves.names(declaration)[0]


@pytest.mark.parametrize("declaration", [pytest.param(one, marks=of_studies(one)) for one in LIVE], ids=named)
def test_every_study_can_be_carried_out(declaration: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(tomli_w.dumps(declaration))
    try:
        check_study(loadframe.load_study(path))
    except (CageError, MissingTool) as error:
        pytest.skip(str(error))


def test_there_are_fourteen_studies_of_six_kinds_and_none_is_in_the_library() -> None:
    for roles in (forecasts.ROLES, forecasts.LATER):
        live = [one for role in roles for one in server_curves.declared(role)]
        assert len(live) >= 14
        assert len({forecast_claims.family(server_curves.names(one)[1]) for one in live}) >= 6
    known = {curve.name for curve in forecast_library.curves()}
    assert not known & {named(one) for one in LIVE} and len({named(one) for one in LIVE}) == len(LIVE)


def curve(kind: str) -> dict[str, Any]:
    rows = [[load, 100 * load / (1 + 0.05 * load), {"cpu": min(load / 30, 1)}, 3 + load] for load in (1, 2, 4, 8, 16)]
    return {"kind": kind, "axis": "concurrency", "servers": {}, "ceilings": [], "rows": rows, "limits": {}}


def test_curves_are_kept_one_by_one_and_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def measured(declaration: Mapping[str, Any], runs: Path) -> dict[str, Any]:
        name, kind = server_curves.names(declaration)
        asked.append(name)
        if name == "varnish-new-connections":
            raise TargetError("varnishd did not start", remedy="Look at its log.")
        return curve(kind)

    monkeypatch.setattr(server_curves, "measured", measured)
    monkeypatch.setattr(loadframe, "sweep_leftovers", lambda: None)
    save = tmp_path / "kept.json"
    curves, failed = forecasts.live(tmp_path, forecasts.ROLES, ["squid", "varnish", "sqlite-extra-pages"], save)
    assert asked == ["sqlite-extra-pages", "varnish-new-connections", "squid-small-rate"]
    assert [one.name for one in curves] == ["sqlite-extra-pages", "squid-small-rate"] and failed == 1
    assert "varnish-new-connections: failed" in capsys.readouterr().err
    assert list(json.loads(save.read_text())) == ["sqlite-extra-pages", "squid-small-rate"]
    again, _ = forecasts.live(tmp_path, forecasts.ROLES, ["squid", "sqlite"], save)
    assert asked[3:] == [] and again == curves
    assert forecasts.recorded(save) == curves
    assert curves[0].observations.rows[0].latency_p95_ms == 4


def test_a_kind_that_there_is_not_is_a_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["forecasts.py", "--live", "--only", "apache"])
    with pytest.raises(SystemExit) as ended:
        forecasts.main()
    assert ended.value.code == 2
