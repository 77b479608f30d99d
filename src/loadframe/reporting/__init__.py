"""Records in; a page, a text, JSON and a picture out. Nothing here touches a server, and no other room's code is used.

render_page(investigation)          the case study, one HTML page that needs nothing else; write_page: to a path
render_text(investigation)          the same facts at the end of a command
render_curve, render_comparison, render_forecast    a curve, a verdict, a forecast alone
render_capacity, capacity_json      what a capacity search found
render_ladder_page, render_ladder, ladder_json   which change gave which share
render_tuning_page, render_tuning, tuning_json   what a search for settings found
investigation_json, curve_json, verdict_json, limits_json, comparison_json, forecast_json    what other tools read
speedscope_json(name, profiles)     sampled stacks for the viewer of that name
chart_svg(investigation)            the before/after chart alone, for a README
"""

from __future__ import annotations

from loadframe.reporting.capacity_report import render_capacity
from loadframe.reporting.charts import chart_svg
from loadframe.reporting.forecasts import render_forecast
from loadframe.reporting.json_shapes import (
    capacity_json,
    comparison_json,
    curve_json,
    forecast_json,
    investigation_json,
    ladder_json,
    limits_json,
    tuning_json,
    verdict_json,
)
from loadframe.reporting.ladder_report import render_ladder
from loadframe.reporting.page import render_ladder_page, render_page, render_tuning_page, write_page
from loadframe.reporting.speedscope import TitledStacks, speedscope_json
from loadframe.reporting.text import render_comparison, render_curve, render_text
from loadframe.reporting.tuning_report import render_tuning

__all__ = [
    "TitledStacks",
    "capacity_json",
    "chart_svg",
    "comparison_json",
    "curve_json",
    "forecast_json",
    "investigation_json",
    "ladder_json",
    "limits_json",
    "render_capacity",
    "render_comparison",
    "render_curve",
    "render_forecast",
    "render_ladder",
    "render_ladder_page",
    "render_page",
    "render_text",
    "render_tuning",
    "render_tuning_page",
    "speedscope_json",
    "tuning_json",
    "verdict_json",
    "write_page",
]
