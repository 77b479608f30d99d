"""What sadf writes in either form has the same series; damaged text is refused with a remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.errors import SampleError
from loadframe_watch.observed.csv_files import NO_ZONE
from loadframe_watch.observed.reading import import_observed, is_json, parse_sysstat
from loadframe_watch.observed.records import ObservedMapping
from loadframe_watch.observed.series import assemble

TEXT = """\
# hostname;interval;timestamp;CPU;%user;%nice;%system;%iowait;%steal;%idle
vm;1;2026-11-25 04:51:55 UTC;-1;44.95;0.00;6.57;0.00;0.00;48.48
vm;1;2026-11-25 04:51:56 UTC;-1;6.53;0.00;6.53;0.00;0.00;86.93
vm;-1;2026-11-25 04:51:57 UTC;LINUX-RESTART\t(2 CPU)
# hostname;interval;timestamp;INTR;CPU*
vm;1;2026-11-25 04:51:55 UTC;sum;1248.00;924.00;324.00
# hostname;interval;timestamp;runq-sz;plist-sz;ldavg-1;ldavg-5;ldavg-15;blocked
vm;1;2026-11-25 04:51:55 UTC;3;189;4.48;3.72;3.52;0
vm;1;2026-11-25 04:51:56 UTC;2;196;4.48;3.72;3.52;0
# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;dkB/s;areq-sz;aqu-sz;await;%util
vm;1;2026-11-25 04:51:55 UTC;vda;20.00;72.00;4.00;8.00;4.20;0.00;0.25;30.40
vm;1;2026-11-25 04:51:56 UTC;vda;20.00;72.00;4.00;8.00;4.20;0.00;0.25;20.40
"""
"""Of sysstat 12.6: sadf -d -- -u -q -d -I SUM."""


def moment(second: int, idle: float, waiting: int, util: float) -> dict[str, Any]:
    """One of sadf -j."""
    return {
        "timestamp": {"date": "2026-11-25", "time": f"04:51:{second}", "utc": 1, "interval": 1},
        "cpu-load": [{"cpu": "all", "user": 1.0, "idle": idle}],
        "queue": {"runq-sz": waiting, "plist-sz": 189},
        "disk": [{"disk-device": "vda", "tps": 20.0, "util-percent": util}],
    }


def document() -> dict[str, Any]:
    statistics = [moment(55, 48.48, 3, 30.4), moment(56, 86.93, 2, 20.4)]
    return {"sysstat": {"hosts": [{"nodename": "vm", "statistics": statistics, "restarts": [{"boot": {}}]}]}}


@pytest.mark.parametrize("text", [TEXT, json.dumps(document())])
def test_both_forms_have_the_same_series(text: str) -> None:
    assert is_json(text) == (text is not TEXT)
    found = assemble(parse_sysstat(text, "sa25"), ObservedMapping(load="runq-sz"))
    assert found.load == (3, 2)
    assert found.time_s[1] - found.time_s[0] == 1
    assert found.use["cpu"] == pytest.approx((0.5152, 0.1307))
    assert found.use["disk.vda"] == pytest.approx((0.304, 0.204))
    assert found.notes == ("The machine was restarted 1 time.",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# hostname;interval;timestamp;CPU;%idle\nvm;1;2026-11-25 04:51:55 UTC;-1\n", "4 cells"),
        ("# hostname;interval;timestamp;CPU;%idle\nvm;1;noon;-1;5\n", "noon"),
        ("# hostname;interval;timestamp;CPU;%idle\n", "no measurements"),
        ("# host;when\n", "begins with"),
        ('{"sysstat": {}}', "`hosts`"),
        ('{"sysstat": {"hosts": [{"statistics": [{"cpu-load": []}]}]}}', "timestamp"),
    ],
)
def test_what_is_wrong_is_named(text: str, words: str) -> None:
    with pytest.raises(SampleError) as raised:
        parse_sysstat(text, "sa25")
    assert words in str(raised.value) and raised.value.remedy


@given(st.integers(0, len(TEXT)), st.text(max_size=8))
def test_damaged_text_is_read_or_refused_with_a_remedy(at: int, text: str) -> None:
    for whole in (TEXT, json.dumps(document())):
        try:
            parse_sysstat(whole[:at] + text + whole[at + len(text) :], "x")
        except SampleError as error:
            assert error.remedy


def test_times_of_an_unknown_zone_are_said_to_be() -> None:
    """sadf -T writes the time of the machine's place."""
    local = "# hostname;interval;timestamp;CPU;%idle\nvm;1;2026-11-25 04:51:55{};-1;90\n"
    assert parse_sysstat(local.format(""), "x").notes == (NO_ZONE,)
    assert parse_sysstat(local.format(" UTC"), "x").notes == ()


def test_what_sar_prints_is_refused_with_the_command_that_writes_what_is_read(tmp_path: Path) -> None:
    """Seen: "line 1 has '\\t' between its columns"."""
    file = tmp_path / "sar.txt"
    file.write_text(
        "Linux 6.1.0-18-amd64 (web1) \t11/25/2025 \t_x86_64_\t(4 CPU)\n\n"
        "12:00:01 AM     CPU     %user     %nice   %system   %iowait    %steal     %idle\n"
        "12:10:01 AM     all      3.21      0.00      1.02      0.11      0.00     95.66\n"
    )
    with pytest.raises(SampleError, match="what sar prints") as raised:
        import_observed(str(file))
    assert "sadf -d" in raised.value.remedy
