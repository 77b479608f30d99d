"""The API for programs: what production data say, and how a load goes on as its database grows (docs/api.md)."""

from loadframe_watch.growth.loads import following_of_run, forecast_growth, read_load, windows_of_run
from loadframe_watch.growth.report import following_json, growth_json, render_following, render_growth
from loadframe_watch.observed.answers import learned_json, predict_observed
from loadframe_watch.observed.learning import learn
from loadframe_watch.observed.reading import import_observed
from loadframe_watch.observed.report import render_learned

__all__ = [
    "following_json",
    "following_of_run",
    "forecast_growth",
    "growth_json",
    "import_observed",
    "learn",
    "learned_json",
    "predict_observed",
    "read_load",
    "render_following",
    "render_growth",
    "render_learned",
    "windows_of_run",
]
