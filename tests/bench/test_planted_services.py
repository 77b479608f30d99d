"""The planted services start as their studies say, answer, and take each setting; and each study can score."""

from __future__ import annotations

import urllib.request
from pathlib import Path
from typing import Any

import pytest

import planted_programs
import planted_services

STUDIES = planted_programs.studies()
WITH_KNOB = [name for name, tables in STUDIES.items() if tables["planted"].get("settings")]


def here(name: str) -> dict[str, Any]:
    """A study whose programs this machine has; what needs another language is compiled."""
    if lacking := planted_programs.lacking(STUDIES[name]):
        pytest.skip(f"this machine has no {', '.join(lacking)}")
    planted_programs.build()
    return STUDIES[name]


@pytest.mark.parametrize(
    "name", [*WITH_KNOB, "service-cpu", "service-upstream", "service-growth-requests", "service-growth-time"]
)
def test_a_service_answers_and_has_the_settings_that_it_was_given(name: str) -> None:
    tables = here(name)
    given = tables["target"].get("settings", {})
    other, files = planted_services.changed(tables, lifted=True)
    for settings, limit in ((given, tables.get("cage", {}).get("open_files")), (other, files)):
        with planted_programs.started(tables, settings, limit) as running:
            said = running.config()
            own = planted_programs.own(tables, settings)
            assert {key: str(said[key]) for key in own} == {key: str(value) for key, value in own.items()}
            with urllib.request.urlopen(f"http://127.0.0.1:{running.port}/", timeout=20) as answer:
                assert answer.status == 200
                assert answer.read()
        assert running.process.poll() is not None


def test_decoys_and_the_knob_are_told_apart() -> None:
    tables = STUDIES["service-workers"]
    assert planted_services.changed(tables, lifted=True)[0] == {"workers": 32, "cache_mb": 64, "idle_timeout_s": 60}
    assert planted_services.changed(tables, lifted=False)[0] == {"workers": 4, "cache_mb": 256, "idle_timeout_s": 600}
    files = STUDIES["service-files"]
    assert planted_services.changed(files, lifted=True)[1] == planted_services.PLENTY_OF_FILES
    assert planted_services.changed(files, lifted=False)[1] == files["cage"]["open_files"]


def test_every_way_to_apply_a_setting_is_used_and_every_language() -> None:
    settings = [spec for tables in STUDIES.values() for spec in tables["target"].get("setting", {}).values()]
    assert {spec["apply"] for spec in settings} == {"environment", "argument", "file", "command"}
    files = {Path(spec["file"]).suffix for spec in settings if spec["apply"] == "file"}
    assert files == {".json", ".ini", ".properties", ".toml", ".yaml"}
    first = [tables["target"]["command"][0] for tables in STUDIES.values()]
    assert any("python" in word for word in first)
    assert {"node", "java"} <= set(first)
    assert any(word.startswith(str(planted_programs.BUILT)) for word in first)


@pytest.mark.parametrize("suffix", [".json", ".ini", ".toml", ".properties"])
def test_a_configuration_file_has_what_was_asked_for(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"app{suffix}"
    planted_programs.write(path, {"fonts.cache": 16, "fonts.connections": 8})
    text = path.read_text()
    assert "cache" in text
    assert "16" in text
    assert ("fonts.cache" in text) == (suffix == ".properties")


@pytest.mark.parametrize("name", [name for name, tables in STUDIES.items() if len(tables["target"].get("setting", {}))])
def test_a_study_with_settings_has_decoys(name: str) -> None:
    tables = STUDIES[name]
    moves, declared = set(tables["planted"].get("settings", ())), tables["target"]["setting"]
    assert len(declared.keys() - moves) >= 2
    assert moves - {planted_services.LIMIT} <= declared.keys()
    for key, spec in declared.items():
        assert tables["target"]["settings"][key] == spec["values"][0] != spec["values"][-1]
