"""Loadframe loads a real server step by step until it bends, names the cause with evidence, changes that one
thing and proves the gain.

    import loadframe
    from pathlib import Path

    study = loadframe.load_study(Path("study.toml"), ["measure.budget=2m"])
    investigation = loadframe.investigate(study, Path("runs"))
    print(loadframe.render_text(investigation))

docs/api.md has each name with its arguments, its result and its errors, which are the tree in
loadframe.errors. Names are imported on first use: worker processes and the recorder start from this package and must
stay light.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from loadframe.version import __version__

if TYPE_CHECKING:  # at run time each of these imports is made on the first use of its name
    from loadframe.analysis.curve import of as fit_curve
    from loadframe.bench.places import revert as revert_changes
    from loadframe.changes.durable import forget as forget_changes
    from loadframe.changes.durable import of_this_command as own_changes
    from loadframe.changes.durable import unreverted as unreverted_changes
    from loadframe.changes.lists import read as changes_not_reverted
    from loadframe.changes.lists import unreadable as unreadable_changes
    from loadframe.experiments.beginning import begin
    from loadframe.experiments.choosing import services
    from loadframe.experiments.comparing import runs as compare_runs
    from loadframe.experiments.forecasting import calibration, predict, predict_run
    from loadframe.experiments.limits_now import limits
    from loadframe.experiments.profiling import write_speedscope
    from loadframe.experiments.reading import absent, conclude, open_run, write_answer
    from loadframe.formats.csv_tables import read_observations
    from loadframe.host.leftovers import sweep as sweep_leftovers
    from loadframe.lab import capacity, compare, investigate, ladder, measure, verify
    from loadframe.reporting.comparison_report import render_comparison
    from loadframe.reporting.curve_report import render_curve
    from loadframe.reporting.forecasts import render_forecast
    from loadframe.reporting.json_shapes import (
        capacity_json,
        comparison_json,
        curve_json,
        forecast_json,
        investigation_json,
        ladder_json,
        ledger_json,
    )
    from loadframe.reporting.limits_report import render_limits
    from loadframe.reporting.reports import render_markdown, render_text, write_figures, write_page
    from loadframe.study import Study
    from loadframe.study import load as load_study
    from loadframe.study.cases import all_cases as cases
    from loadframe.study.cases import find as case

__all__ = [
    "Study",
    "__version__",
    "absent",
    "begin",
    "calibration",
    "capacity",
    "capacity_json",
    "case",
    "cases",
    "changes_not_reverted",
    "compare",
    "compare_runs",
    "comparison_json",
    "conclude",
    "curve_json",
    "fit_curve",
    "forecast_json",
    "forget_changes",
    "investigate",
    "investigation_json",
    "ladder",
    "ladder_json",
    "ledger_json",
    "limits",
    "load_study",
    "measure",
    "open_run",
    "own_changes",
    "predict",
    "predict_run",
    "read_observations",
    "render_comparison",
    "render_curve",
    "render_forecast",
    "render_limits",
    "render_markdown",
    "render_text",
    "revert_changes",
    "services",
    "sweep_leftovers",
    "unreadable_changes",
    "unreverted_changes",
    "verify",
    "write_answer",
    "write_figures",
    "write_page",
    "write_speedscope",
]

if not TYPE_CHECKING:  # a type checker would answer Any for every name that is not there

    @cache
    def _places() -> dict[str, tuple[str, str]]:
        """Name -> its module and its name there, as the imports above say."""
        import ast

        statements = ast.walk(ast.parse(Path(__file__).read_text(encoding="utf-8", errors="strict")))
        imports = [statement for statement in statements if isinstance(statement, ast.ImportFrom)]
        return {
            alias.asname or alias.name: (statement.module, alias.name)
            for statement in imports
            for alias in statement.names
        }

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'loadframe' has no attribute {name!r}")
        module, original = _places()[name]
        return getattr(import_module(module), original)
