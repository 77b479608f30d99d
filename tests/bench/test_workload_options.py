"""A workload that is what is studied is changed like a target: one state at a time, every change in the journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from loadframe.bench.declared import WorkloadOptions
from loadframe.changes.journal import not_reverted, read
from loadframe.errors import StudyError
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.model import SettingValue
from loadframe.runs.folder import RunFolder
from loadframe.study import Study, parse
from loadframe.workloads import registry
from loadframe.workloads.base import Workload

STUDY = """
[study]
name = "staged"
question = "?"
[target]
kind = "sqlite"
[workload]
kind = "job-queue"
[load]
axis = "concurrency"
levels = [1, 2]
"""


@dataclass
class Pipeline:
    """A workload that goes on with other options."""

    kind: str = "pipeline"
    options: dict[str, SettingValue] = field(default_factory=lambda: dict[str, SettingValue](db_threads=1))

    def with_options(self, changed: Mapping[str, SettingValue]) -> Pipeline:
        if changed.get("db_threads") == 0:
            raise StudyError("db_threads = 0 does not suit it")
        return Pipeline(self.kind, {**self.options, **changed})


@pytest.fixture
def study() -> Study:
    return parse(STUDY)


def of(workload: Any, study: Study, folder: Path) -> WorkloadOptions:
    return WorkloadOptions(study, cast(Workload, workload), RunFolder.create(folder, study.study.name))


def test_the_workload_has_the_options_of_the_treatment_in_use(study: Study, tmp_path: Path) -> None:
    options = of(Pipeline(), study, tmp_path)
    options.bring("B", {"db_threads": 4})
    assert cast(Any, options.now).options == {"db_threads": 4}
    options.bring("A", {})
    assert options.now is options.workload


def test_every_change_is_in_the_journal_and_ends_with_the_run(study: Study, tmp_path: Path) -> None:
    options = of(Pipeline(), study, tmp_path)
    options.bring("B", {"db_threads": 4})
    told = [(each.layer, each.setting, each.after, each.status) for each in read(options.run.path)]
    assert told == [("application", "db_threads", 4, "intent"), ("application", "db_threads", 4, "applied")]
    options.close()
    assert read(options.run.path)[-1].status == "ended"
    assert not_reverted(read(options.run.path)) == []


def test_options_that_do_not_suit_it_are_refused_before_anything_is_changed(study: Study, tmp_path: Path) -> None:
    options = of(Pipeline(), study, tmp_path)
    with pytest.raises(StudyError, match="does not suit"):
        options.check({"db_threads": 0})
    assert read(options.run.path) == []


def test_a_workload_that_has_no_other_options_says_so(study: Study, tmp_path: Path) -> None:
    options = of(registry.make("job-queue", {}, Allowance(US)), study, tmp_path)
    options.bring("A", {})
    with pytest.raises(StudyError, match="cannot go on with other options: db_threads"):
        options.bring("B", {"db_threads": 2})
