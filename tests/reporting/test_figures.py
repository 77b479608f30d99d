"""The figures of a report are files that stand alone: whole, titled, and readable without the page."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from loadframe.errors import RunError
from loadframe.model import Investigation
from loadframe.reporting import reports
from loadframe.reporting.reports import titled, write_figures

from .test_ladder_report import FOUND as LADDER

PNG = b"\x89PNG\r\n"


def test_a_chart_is_written_with_its_title_and_its_specification(tmp_path: Path) -> None:
    written = write_figures(LADDER, tmp_path / "new" / "figures")
    assert [path.name for path in written] == ["waterfall.svg", "waterfall.png", "waterfall.json"]
    svg, png, spec = (path.read_bytes() for path in written)
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert b"What each change gives" in svg
    assert png.startswith(PNG)
    assert b'"layer"' in spec


def test_a_flame_graph_carries_its_colours(
    compared: Investigation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "page_charts", lambda _: {})
    written = {path.name: path.read_bytes() for path in write_figures(compared, tmp_path)}
    assert {"flame-difference.svg", "flame-1.svg", "flame-1.png"} <= written.keys()
    for name, data in written.items():
        if name.endswith(".svg"):
            assert ElementTree.fromstring(data).tag == "{http://www.w3.org/2000/svg}svg"
            assert b".difference .up3 { fill: #ec8f50; }" in data and b"var(" not in data
        else:
            assert data.startswith(PNG)


def test_a_title_has_no_line_wider_than_the_picture() -> None:
    spec = titled({"title": "Throughput falls to 35 % between 12 and 20 jobs; after the change it grows", "width": 270})
    assert len(spec["title"]["text"]) > 1
    assert all(len(line) * 8 <= 270 for line in spec["title"]["text"])


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="file/figures") as raised:
        write_figures(LADDER, tmp_path / "file" / "figures")
    assert "--figures" in str(raised.value)
