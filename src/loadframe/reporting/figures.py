"""The figures of a case study as files: SVG and PNG of each, and the Vega-Lite specification of each chart."""

from __future__ import annotations

import json
import re
import shlex
import textwrap
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from loadframe.errors import RunError
from loadframe.formats.json_text import write_json
from loadframe.formats.named_files import write_whole
from loadframe.model import Investigation, RunAnswer
from loadframe.panics import ROOM_BYTES, in_words
from loadframe.reporting import charts, flame, flame_difference, profiles
from loadframe.reporting.vega import render
from loadframe.system.files import Folder, Whose

SCALE = 2.0
"""Pixels of a PNG per CSS pixel."""
CHARACTER_PX = 8.0
"""Of a title's 15-pixel type."""
FLAME_RULES = re.compile(r"^(?:\.flame |\.k-|\.difference ).*$", re.M)


def write_figures(found: RunAnswer, folder: Path) -> tuple[Path, ...]:
    """Every figure of the page as FOLDER/NAME.svg, .png, and .json where it is a chart. RunError where they cannot be
    written."""
    try:
        if not folder.is_dir():
            Folder(folder, Whose.NAMED).make()
        written = []
        for name, data in _files(found):
            write_whole(folder / name, data)
            written.append(folder / name)
        return tuple(written)
    except OSError as error:
        raise RunError(
            f"The figures cannot be written to {folder}: {error.strerror or error}.",
            remedy="Free some disk space or choose another place, then run "
            f"`loadframe report {shlex.quote(found.run)} --figures FOLDER` again.",
        ) from error


def _files(found: RunAnswer) -> Iterator[tuple[str, bytes]]:
    import vl_convert

    if isinstance(found, Investigation):
        drawn, flames = [*charts.page_charts(found).values()], _flames(found)
    else:
        drawn, flames = [chart for chart in [charts.chart_of(found)] if chart is not None], iter(())
    for chart in drawn:
        name, spec = chart.name, titled(json.loads(chart.spec))
        yield f"{name}.svg", svg_of(chart).encode()
        with in_words(f"The chart {name} cannot be drawn", RunError, ValueError, room_bytes=ROOM_BYTES):
            yield f"{name}.png", bytes(vl_convert.vegalite_to_png(spec, scale=SCALE))
        yield f"{name}.json", write_json(spec).encode()
    for name, svg in flames:
        with in_words(f"The figure {name} cannot be drawn", RunError, ValueError, room_bytes=ROOM_BYTES):
            yield f"{name}.svg", svg.encode()
            yield f"{name}.png", bytes(vl_convert.svg_to_png(svg, scale=SCALE))


def svg_of(chart: charts.Chart) -> str:
    """A chart as a file that stands alone: titled, and in words for those who do not see it."""
    return str(render(titled(json.loads(chart.spec)), chart.name, chart.alt))


def titled(spec: dict[str, Any]) -> dict[str, Any]:
    """A specification with paper behind it, and its title in lines no longer than it is wide."""
    lines = textwrap.wrap(str(spec["title"]), max(20, int(spec["width"] / CHARACTER_PX)))
    return {**spec, "title": {"text": lines, "anchor": "start"}, "background": "white"}


def _flames(inv: Investigation) -> Iterator[tuple[str, str]]:
    if (found := flame_difference.of(inv)) is not None:
        yield "flame-difference", _alone(flame_difference.svg(inv, found))
    for number, one in enumerate(profiles.with_flame(inv), start=1):
        label = f"Flame graph of the {one.component}, {profiles.where(inv, one)}"
        yield f"flame-{number}", _alone(flame.svg(one, label=label))


def _alone(svg: str) -> str:
    """With the colours that it has from the page's style sheet."""
    css = resources.files("loadframe.reporting").joinpath("page.css").read_text(encoding="utf-8")
    rules = "\n".join(FLAME_RULES.findall(css)).replace("var(--ink)", "#1f2933")
    head = '<svg xmlns="http://www.w3.org/2000/svg" '
    style = f'<style>{rules}</style><rect width="100%" height="100%" fill="#fff"/>'
    return re.sub(r">", f">{style}", str(svg).replace("<svg ", head, 1), count=1)
