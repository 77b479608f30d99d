"""Loadframe loads a real server step by step until it bends, names the cause with evidence, changes that one
thing and proves the gain.

    import loadframe
    from pathlib import Path

    study = loadframe.load_study(Path("study.toml"), ["measure.budget=2m"])
    investigation = loadframe.investigate(study, Path("runs"))
    print(loadframe.render_text(investigation))

    load_study(path, overrides)   a Study from a TOML file; StudyError names the line
    case(name), cases()           ready studies with a story and a known answer
    investigate(study, runs)      the whole loop -> Investigation, and a run folder with a report
    measure(study, runs)          the curve only -> Measurement
    compare(study, runs)          the study's alternatives side by side -> a Comparison for each
    capacity(study, runs)         the highest load that meets the objective -> Capacity
    ladder(study, runs)           the study's changes one on top of the other: what each adds -> Ladder
    tune(study, runs)             better settings, searched and proved -> Tuning
    open_run(path)                a RunFolder: steps(), treatments(), study(), investigation()
    curves(run)                   {treatment: Curve}, computed again from a run's steps
    read_observations(place), fit_curve(observations)    the curve of a CSV file of your own
    quality(run)                  the quality of a run: flags of its steps, the cost of recording
    conclude(run)                 the Investigation of a run, also of one that was killed
    limits(...)                   the ledger now: of a process, a server, a study's target, the machine -> LedgerNow
    render_limits, ledger_json    the ledger for people and programs
    predict(observations, at), predict_run(run, at)    higher loads, forecast from measurements -> Forecast
    verify(forecast, study, runs), calibration()       forecasts scored, and how often their intervals held
    compare_runs(before, after)   two runs measured one after the other -> Comparison
    read_ndb_config(path, changes), check_ndb(config)   a config.ini of MySQL Cluster, changed and checked -> NdbReport
    write_report(run, investigation)    report.html of a run folder
    render_text, write_page, investigation_json, curve_json: the same facts for people and programs
    write_speedscope(run, path)   the sampled stacks of a run, for the viewer at speedscope.app
    sweep_leftovers()             end processes and remove files of killed commands; every CLI command begins with it
    revert_changes()              revert changes of killed commands on the machine or on a running server
    changes_not_reverted()        changes now in effect, of running and of killed commands
    own_changes()                 those of this process that are not reverted

Errors are the tree in loadframe.errors. Names are imported on first use: worker processes and the recorder start from
this package and must stay light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from loadframe.version import __version__

if TYPE_CHECKING:
    from loadframe.analysis.curve import of as fit_curve
    from loadframe.bench.places import revert as revert_changes
    from loadframe.changes.durable import of_this_command as own_changes
    from loadframe.changes.lists import read as changes_not_reverted
    from loadframe.changes.lists import unreadable as unreadable_changes
    from loadframe.changes.reverting import unreverted as unreverted_changes
    from loadframe.experiments.comparing import runs as compare_runs
    from loadframe.experiments.forecasting import calibration, predict
    from loadframe.experiments.limits_now import limits
    from loadframe.experiments.ndb import check_ndb, read_ndb_config
    from loadframe.experiments.profiling import write_speedscope
    from loadframe.experiments.run_forecasting import predict_run
    from loadframe.experiments.writing import write_report
    from loadframe.host.leftovers import sweep as sweep_leftovers
    from loadframe.lab import (
        capacity,
        compare,
        conclude,
        curves,
        investigate,
        ladder,
        measure,
        measured_ladder,
        measured_tuning,
        open_run,
        quality,
        tune,
        verify,
    )
    from loadframe.observations import read_observations
    from loadframe.reporting import (
        capacity_json,
        comparison_json,
        curve_json,
        forecast_json,
        investigation_json,
        ladder_json,
        render_capacity,
        render_comparison,
        render_curve,
        render_forecast,
        render_ladder,
        render_text,
        render_tuning,
        tuning_json,
        write_page,
    )
    from loadframe.reporting.json_shapes import ledger_json, ndb_json
    from loadframe.reporting.limits_report import render_limits
    from loadframe.reporting.ndb_report import render_ndb
    from loadframe.study import Study
    from loadframe.study import load as load_study
    from loadframe.study.cases import all_cases as cases
    from loadframe.study.cases import find as case

__all__ = [
    "Study",
    "__version__",
    "calibration",
    "capacity",
    "capacity_json",
    "case",
    "cases",
    "changes_not_reverted",
    "check_ndb",
    "compare",
    "compare_runs",
    "comparison_json",
    "conclude",
    "curve_json",
    "curves",
    "fit_curve",
    "forecast_json",
    "investigate",
    "investigation_json",
    "ladder",
    "ladder_json",
    "ledger_json",
    "limits",
    "load_study",
    "measure",
    "measured_ladder",
    "measured_tuning",
    "ndb_json",
    "open_run",
    "own_changes",
    "predict",
    "predict_run",
    "quality",
    "read_ndb_config",
    "read_observations",
    "render_capacity",
    "render_comparison",
    "render_curve",
    "render_forecast",
    "render_ladder",
    "render_limits",
    "render_ndb",
    "render_text",
    "render_tuning",
    "revert_changes",
    "sweep_leftovers",
    "tune",
    "tuning_json",
    "unreadable_changes",
    "unreverted_changes",
    "verify",
    "write_page",
    "write_report",
    "write_speedscope",
]

_API = {
    "Study": ("loadframe.study", "Study"),
    "load_study": ("loadframe.study", "load"),
    "case": ("loadframe.study.cases", "find"),
    "cases": ("loadframe.study.cases", "all_cases"),
    "investigate": ("loadframe.lab", "investigate"),
    "measure": ("loadframe.lab", "measure"),
    "compare": ("loadframe.lab", "compare"),
    "capacity": ("loadframe.lab", "capacity"),
    "ladder": ("loadframe.lab", "ladder"),
    "measured_ladder": ("loadframe.lab", "measured_ladder"),
    "tune": ("loadframe.lab", "tune"),
    "measured_tuning": ("loadframe.lab", "measured_tuning"),
    "compare_runs": ("loadframe.experiments.comparing", "runs"),
    "curves": ("loadframe.lab", "curves"),
    "read_observations": ("loadframe.observations", "read_observations"),
    "fit_curve": ("loadframe.analysis.curve", "of"),
    "quality": ("loadframe.lab", "quality"),
    "conclude": ("loadframe.lab", "conclude"),
    "open_run": ("loadframe.lab", "open_run"),
    "limits": ("loadframe.experiments.limits_now", "limits"),
    "predict": ("loadframe.experiments.forecasting", "predict"),
    "predict_run": ("loadframe.experiments.run_forecasting", "predict_run"),
    "calibration": ("loadframe.experiments.forecasting", "calibration"),
    "verify": ("loadframe.lab", "verify"),
    "read_ndb_config": ("loadframe.experiments.ndb", "read_ndb_config"),
    "check_ndb": ("loadframe.experiments.ndb", "check_ndb"),
    "render_ndb": ("loadframe.reporting.ndb_report", "render_ndb"),
    "ndb_json": ("loadframe.reporting.json_shapes", "ndb_json"),
    "render_forecast": ("loadframe.reporting", "render_forecast"),
    "forecast_json": ("loadframe.reporting", "forecast_json"),
    "render_limits": ("loadframe.reporting.limits_report", "render_limits"),
    "ledger_json": ("loadframe.reporting.json_shapes", "ledger_json"),
    "render_capacity": ("loadframe.reporting", "render_capacity"),
    "capacity_json": ("loadframe.reporting", "capacity_json"),
    "render_ladder": ("loadframe.reporting", "render_ladder"),
    "ladder_json": ("loadframe.reporting", "ladder_json"),
    "render_tuning": ("loadframe.reporting", "render_tuning"),
    "tuning_json": ("loadframe.reporting", "tuning_json"),
    "render_text": ("loadframe.reporting", "render_text"),
    "render_curve": ("loadframe.reporting", "render_curve"),
    "write_report": ("loadframe.experiments.writing", "write_report"),
    "write_page": ("loadframe.reporting", "write_page"),
    "investigation_json": ("loadframe.reporting", "investigation_json"),
    "curve_json": ("loadframe.reporting", "curve_json"),
    "write_speedscope": ("loadframe.experiments.profiling", "write_speedscope"),
    "render_comparison": ("loadframe.reporting", "render_comparison"),
    "comparison_json": ("loadframe.reporting", "comparison_json"),
    "sweep_leftovers": ("loadframe.host.leftovers", "sweep"),
    "revert_changes": ("loadframe.bench.places", "revert"),
    "unreverted_changes": ("loadframe.changes.reverting", "unreverted"),
    "changes_not_reverted": ("loadframe.changes.lists", "read"),
    "unreadable_changes": ("loadframe.changes.lists", "unreadable"),
    "own_changes": ("loadframe.changes.durable", "of_this_command"),
}

if not TYPE_CHECKING:  # a type checker would answer Any for every name that is not there

    def __getattr__(name: str) -> object:
        if name not in _API:
            raise AttributeError(f"module 'loadframe' has no attribute {name!r}")
        module, attribute = _API[name]
        return getattr(import_module(module), attribute)
