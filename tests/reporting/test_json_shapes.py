"""Other tools read this JSON: the keys that were promised are there, and it is JSON in the strict sense."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from loadframe.model import Investigation
from loadframe.reporting.json_shapes import curve_json, investigation_json
from loadframe.runs.formats import decode, encode

CURVE = {"schema", "points", "shape", "peak", "knee", "cliff", "capacity", "usl", "warnings"}
POINT = {"load", "throughput", "throughput_low", "throughput_high", "latency_p95_ms"}
INVESTIGATION = {"schema", "run", "report", "seconds", "rounds", "before", "after", "gain", "next_limit"}
MORE = {"outcome", "ladder", "variants", "conduct", "host", "study"}
FINDING = {"id", "status", "title", "reached_at", "evidence", "ruled_out"}
EVIDENCE = {"metric", "value", "comparison", "threshold", "window"}
LIMIT = {"id", "layer", "ceiling", "configured", "effective", "use", "headroom", "loud", "source", "exhausted_at"}
VERDICT = {"schema", "ratio", "low", "high", "decision", "blocks", "method"}


def round_trip(value: dict[str, Any]) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(json.dumps(value, allow_nan=False))
    assert loaded == value, "what was written is not what is read back"
    return loaded


def test_every_investigation_is_strict_json_with_the_promised_keys(investigation: Investigation) -> None:
    shape = round_trip(investigation_json(investigation))
    assert shape.keys() >= INVESTIGATION | MORE
    assert shape["schema"] == "loadframe.investigation/1"
    for round_ in shape["rounds"]:
        assert round_.keys() >= {"curve", "findings", "tried", "limits", "untried", "silent_cuts"}
        assert round_["curve"].keys() >= CURVE
        assert all(finding.keys() >= FINDING for finding in round_["findings"])
        assert all(piece.keys() >= EVIDENCE for finding in round_["findings"] for piece in finding["evidence"])
        assert all(limit.keys() >= LIMIT for limit in round_["limits"])
        for trial in round_["tried"]:
            assert trial.keys() >= {"remedy", "verdict", "kept"}
            assert trial["remedy"].keys() >= {"id", "changes"}
            assert all(c.keys() >= {"layer", "setting", "before", "after"} for c in trial["remedy"]["changes"])


def test_renamed_fields_keep_their_keys_in_run_folders_and_in_json(farm: Investigation) -> None:
    stored = encode("investigation-record", farm)
    for shape in (json.loads(stored), investigation_json(farm)):
        assert shape.keys() >= {"conduct", "survivals"} and not shape.keys() & {"quality", "warm_restarts"}
        assert "standing" in shape["conduct"] and "silent_cuts" in shape["rounds"][0]
    assert decode("investigation-record", stored, Investigation, where="").quality == farm.quality


def test_the_nested_shapes_use_the_names_of_the_design(farm: Investigation) -> None:
    shape = round_trip(investigation_json(farm))
    curve = shape["rounds"][0]["curve"]
    assert all(point.keys() >= POINT for point in curve["points"])
    assert curve["cliff"] == {"from": 12.0, "to": 20.0, "throughput_kept": 0.35}
    assert curve["knee"] == {"load": 12.6, "low": 11.8, "high": 13.9}
    assert curve["usl"].keys() == {"lambda", "sigma", "kappa", "intervals", "peak_load"}
    assert curve["usl"]["intervals"] == {"lambda": [380.0, 440.0], "sigma": [0.01, 0.03], "kappa": [0.0, 0.0002]}
    assert shape["gain"]["ratio"] == 2.874
    assert shape["next_limit"]["id"] == "process.open_files"
    assert shape["next_limit"]["load"] == 415.0
    assert shape["before"].keys() == {"peak", "knee", "bend"}


def test_each_shape_stands_alone(farm: Investigation) -> None:
    first = farm.rounds[0]
    assert round_trip(curve_json(first.curve))["schema"] == "loadframe.curve/1"
    shape = round_trip(investigation_json(farm))["rounds"][0]
    assert shape["tried"][0]["verdict"].keys() >= VERDICT
    full = {"load": 12.8, "low": 12.4, "high": 13.1, "how": "measured", "method": "line"}
    assert shape["limits"][0]["exhausted_at"] == full


def test_what_is_not_a_number_is_null(farm: Investigation) -> None:
    verdict = replace(farm.rounds[0].tried[0].verdict, low=float("nan"), high=float("inf"))
    variants = (replace(farm.variants[0], verdict=verdict),)
    shape = round_trip(investigation_json(replace(farm, variants=variants)))["gain"]
    assert (shape["low"], shape["high"]) == (None, None)
    assert shape["ratio"] == verdict.ratio
