"""What may be loaded over a fleet, and what is refused before any host is reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadframe.errors import StudyError
from loadframe.study import load as load_study
from loadframe_fleet.declaration import load
from loadframe_fleet.over import drivers_over

FLEET = """
[fleet]
name = "laboratory"
[[host]]
name = "web"
roles = ["target"]
ssh = "web.example"
address = "192.0.2.7"
authorised = true
owner = "the operators"
[[host]]
name = "here"
roles = ["driver"]
here = true
"""
OF_CACHES = pytest.mark.extension("loadframe_caches")
STUDY = """
[study]
name = "cache"
question = "How much does it serve?"
[target]
kind = "varnish"
[workload]
kind = "http"
[load]
axis = "working_set"
levels = [4, 8]
[[alternative]]
name = "nginx"
target = { kind = "nginx-cache" }
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('kind = "varnish"', 'kind = "postgres"', "cannot load a server of kind 'postgres' that Loadframe starts"),
        pytest.param(
            'kind = "nginx-cache"',
            'kind = "squid"',
            "cannot load a server of kind 'squid' that Loadframe starts",
            marks=OF_CACHES,
        ),
        ('kind = "http"', 'kind = "pgbench"', "the workload 'pgbench' cannot be driven from a fleet"),
        (
            'kind = "varnish"',
            'kind = "url"\nsettings = { url = "http://192.0.2.7:80" }',
            "needs a server that Loadframe starts",
        ),
    ],
)
def test_a_study_that_cannot_be_shared_out_is_refused(tmp_path: Path, old: str, new: str, told: str) -> None:
    refused(tmp_path, STUDY.replace(old, new), FLEET, told)


@OF_CACHES
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('roles = ["target"]', 'roles = ["observer"]', "0 hosts of the fleet have the role target"),
        ('roles = ["driver"]', 'roles = ["driver", "target"]', "2 hosts of the fleet have the role target"),
        ('address = "192.0.2.7"', "", "does not say on which address"),
    ],
)
def test_the_fleet_file_says_where_the_server_listens(tmp_path: Path, old: str, new: str, told: str) -> None:
    refused(tmp_path, STUDY, FLEET.replace(old, new), told)


@OF_CACHES
def test_on_this_machine_too_its_owner_is_asked_before_a_port_is_opened(tmp_path: Path) -> None:
    here = '[fleet]\nname = "f"\n[[host]]\nname = "here"\nroles = ["driver", "target"]\nhere = true\n'
    refused(tmp_path, STUDY, here + 'address = "127.0.0.1"\n', "has authorised that")


def refused(folder: Path, study: str, fleet: str, told: str) -> None:
    """Before any host is reached: none of these is there."""
    for name, text in (("study", study), ("fleet", fleet)):
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    with (
        pytest.raises(StudyError, match=told) as error,
        drivers_over(load(folder / "fleet.toml"), load_study(folder / "study.toml")),
    ):
        pass
    assert error.value.remedy
