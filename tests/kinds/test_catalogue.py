"""Settings are checked in one place, brought into one form, and a refusal says what would be right."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.errors import StudyError
from loadframe.kinds.catalogue import Catalogue, SettingSpec, canonical
from loadframe.kinds.mysql.counters import MARIADB_CATALOGUE as MARIADB
from loadframe.kinds.postgres.counters import CATALOGUE as POSTGRES
from loadframe.kinds.sqlite.kind import CATALOGUE as SQLITE
from loadframe.model import SettingValue

SIZE = SettingSpec("size", "bytes", dynamic=True, low=0, high=2**60)
SPECS = [(catalogue, spec) for catalogue in (MARIADB, POSTGRES, SQLITE) for spec in catalogue.specs]


@pytest.mark.parametrize(
    ("written", "bytes_"),
    [(0, 0), ("134217728", 134217728), ("128M", 2**27), ("1GiB", 2**30), ("16 kB", 2**14), ("2g", 2**31)],
)
def test_sizes_may_be_written_with_a_unit(written: SettingValue, bytes_: int) -> None:
    assert canonical("mariadb", SIZE, written) == bytes_


@pytest.mark.parametrize("written", ["", "M", "1.5M", "-1", True, "1 elephant", "0x10"])
def test_what_is_no_size_is_refused(written: SettingValue) -> None:
    with pytest.raises(StudyError, match="size = "):
        canonical("mariadb", SIZE, written)


TIME = SettingSpec("time", "duration", dynamic=True, low=-1, high=86400, unit="s")


@pytest.mark.parametrize(
    ("written", "seconds"),
    [(30, 30), ("30s", 30), ("5min", 300), ("1500 ms", 1.5), ("1h", 3600), (-1, -1), ("1d", 86400)],
)
def test_times_may_be_written_with_a_unit(written: SettingValue, seconds: float) -> None:
    assert canonical("postgres", TIME, written) == seconds


@pytest.mark.parametrize("written", ["", "min", "5 weeks", True, "nan", "1e999", "2d"])
def test_what_is_no_time_or_too_long_is_refused(written: SettingValue) -> None:
    with pytest.raises(StudyError, match="time = "):
        canonical("postgres", TIME, written)


def test_minus_one_is_a_word_of_its_own_only_where_the_target_has_it() -> None:
    assert POSTGRES.check({"wal_buffers": -1, "autovacuum_work_mem": "-1"}) == {
        "wal_buffers": -1, "autovacuum_work_mem": -1,
    }  # fmt: skip
    with pytest.raises(StudyError, match="shared_buffers = -1"):
        POSTGRES.check({"shared_buffers": -1})


def test_a_switch_among_words_may_be_written_as_a_switch() -> None:
    assert POSTGRES.check({"synchronous_commit": False}) == {"synchronous_commit": "off"}


@pytest.mark.parametrize(("catalogue", "spec"), SPECS, ids=lambda value: getattr(value, "name", value.kind))
def test_each_setting_has_a_source_and_takes_its_own_default(catalogue: Catalogue, spec: SettingSpec) -> None:
    assert spec.source
    if spec.default is not None:
        assert canonical(catalogue.kind, spec, spec.default) == spec.default


@pytest.mark.parametrize("catalogue", [MARIADB, POSTGRES, SQLITE], ids=lambda catalogue: catalogue.kind)
def test_no_setting_stands_in_the_table_twice(catalogue: Catalogue) -> None:
    assert len(set(catalogue.names())) == len(catalogue.specs)


def test_dashes_and_capitals_are_the_same_name() -> None:
    assert MARIADB.check({"Table-Open-Cache": "400"}) == {"table_open_cache": 400}


def test_names_beyond_the_catalogue_pass_only_where_the_target_knows_them() -> None:
    assert MARIADB.check({"lock-wait-timeout": 5}, also=["lock_wait_timeout"]) == {"lock_wait_timeout": 5}
    with pytest.raises(StudyError, match="lock_wait_timeout"):
        MARIADB.check({"lock_wait_timeout": 5})


VALUES = st.one_of(st.text(max_size=12), st.integers(-(2**70), 2**70), st.booleans(), st.floats())


@given(st.sampled_from(SPECS), VALUES)
def test_any_value_is_taken_in_a_form_that_stays_or_refused_by_name(
    entry: tuple[Catalogue, SettingSpec], value: SettingValue
) -> None:
    catalogue, spec = entry
    try:
        taken = canonical(catalogue.kind, spec, value)
    except StudyError as error:
        assert spec.name in error.fact
        assert error.remedy
    else:
        assert canonical(catalogue.kind, spec, taken) == taken
