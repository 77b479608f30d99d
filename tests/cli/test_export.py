"""`loadframe export`: to a file or to stdout, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

pytestmark = pytest.mark.extension("loadframe_live")
Command = Callable[..., object]
RUN = str(Path(__file__).parents[1] / "data/runs/investigation")


@pytest.mark.long
def test_what_is_written_to_stdout_is_the_file(loadframe: Command, tmp_path: Path) -> None:
    shown = loadframe("export", RUN, "--format", "openmetrics")
    written = loadframe("export", RUN, "--format", "openmetrics", "--to", "run.prom", "--json").json  # type: ignore[attr-defined]
    text = (tmp_path / "run.prom").read_text()
    assert shown.out == text  # type: ignore[attr-defined]
    assert len(list(text_string_to_metric_families(text))) > 10
    assert written == {
        "schema": "loadframe.export/1",
        "run": RUN,
        "format": "openmetrics",
        "file": "run.prom",
        "bytes": len(text.encode()),
    }


@pytest.mark.long
def test_one_stream_cannot_have_both(loadframe: Command) -> None:
    refused = loadframe("export", RUN, "--format", "bencher", "--json")
    assert refused.code == 2  # type: ignore[attr-defined]
    assert "--to FILE" in refused.json["remedy"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("place", ["nowhere/run.prom", ".", "x\udc80"])
def test_what_cannot_be_written_is_told(loadframe: Command, tmp_path: Path, place: str) -> None:
    refused = loadframe("export", RUN, "--format", "bencher", "--to", place)
    if place.startswith("x"):
        assert refused.code == 0  # type: ignore[attr-defined]
        return
    assert refused.code == 1  # type: ignore[attr-defined]
    assert "cannot be written" in refused.err  # type: ignore[attr-defined]
    assert list(tmp_path.iterdir()) == []


def test_a_link_stays_a_link_and_the_old_file_its_mode(loadframe: Command, tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("before")
    (tmp_path / "real.json").chmod(0o640)
    (tmp_path / "link.json").symlink_to("real.json")
    assert loadframe("export", RUN, "--format", "bencher", "--to", "link.json").code == 0  # type: ignore[attr-defined]
    assert (tmp_path / "link.json").readlink() == Path("real.json")
    assert (tmp_path / "real.json").read_text().startswith("{")
    assert (tmp_path / "real.json").stat().st_mode & 0o777 == 0o640
    assert len(list(tmp_path.iterdir())) == 2


def test_a_device_is_written_to_and_stays_one(loadframe: Command) -> None:
    before = Path("/dev/null").stat()
    assert loadframe("export", RUN, "--format", "curve.csv", "--to", "/dev/null").code == 0  # type: ignore[attr-defined]
    assert Path("/dev/null").stat().st_ino == before.st_ino
