"""The core's tests where extensions are missing: what needs one is left out, counted, bounded (`make test-alone`)."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from traceback import walk_tb
from typing import Any

import pytest

from loadframe.entry_points import EXTENSIONS, KINDS_GROUP, WORKLOADS_GROUP

MODULES = {name.replace("-", "_") for registers in EXTENSIONS.values() for name in registers.values()}
OF_ALL = pytest.mark.extension(*sorted(MODULES))
"""Of a test that compares something with all extensions."""
IMPORTS, NEEDS = "left out: it imports ", "needs loadframe_"


def of_studies(*studies: Mapping[str, Any]) -> pytest.MarkDecorator:
    """The mark of a test that carries out these, as they are in TOML."""
    kinds = [(WORKLOADS_GROUP, study["workload"]["kind"]) for study in studies]
    for study in studies:
        states = (study, *study.get("alternative", ()))
        kinds += [(KINDS_GROUP, state["target"]["kind"]) for state in states if "kind" in state.get("target", {})]
    names = {EXTENSIONS[group][kind] for group, kind in kinds if kind in EXTENSIONS[group]}
    return pytest.mark.extension(*sorted(name.replace("-", "_") for name in names))


class LeftOut:
    """Leaves out each file of tests that imports an extension which is not installed, itself or in a module of tests or
    benchmarks; more than most of them are a failure. Counts them, and the tests that are marked and skipped."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.files: set[str] = set()
        self.ran: set[str] = set()
        self.skipped = 0

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        error = report.call.excinfo.value.__cause__ if report.failed and report.call and report.call.excinfo else None
        if isinstance(error, ModuleNotFoundError) and error.name in MODULES and not _imported_by_the_core(error):
            report.outcome = "skipped"
            report.longrepr = (str(collector.path), 1, f"{IMPORTS}{error.name}")
        return report

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if isinstance(report.longrepr, tuple) and report.longrepr[2].startswith(IMPORTS):
            self.files.add(report.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and not report.skipped:
            self.ran.add(report.nodeid.partition("::")[0])
        self.skipped += isinstance(report.longrepr, tuple) and NEEDS in report.longrepr[2]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if len(self.files) > self.most and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.write_line(
            f"Files with tests that ran: {len(self.ran)}. Left out, because they import an extension: {len(self.files)}"
            f" (at most {self.most} may be). Tests skipped, because they need one: {self.skipped}."
        )


def _imported_by_the_core(error: ModuleNotFoundError) -> bool:
    packages = [str(frame.f_globals.get("__name__")).partition(".")[0] for frame, _ in walk_tb(error.__traceback__)]
    return [name for name in packages if name != "importlib"][-1] == "loadframe"
