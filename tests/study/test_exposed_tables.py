"""[[target.metrics]] and [[target.limit]]: what a study may declare, and what is refused with its reason."""

from __future__ import annotations

import pytest

from loadframe.bench.checking import check_consent
from loadframe.errors import StudyError
from loadframe.study import Study, parse
from loadframe.study.exposed_tables import Address, address_of

STUDY = """
[study]
name = "pool"
question = "What limits it?"
[target]
kind = "service"
command = ["app"]
[target.settings]
pool = 4
[target.setting.pool]
values = [4, 8]
apply = "environment"
{tables}
[workload]
kind = "http"
[load]
axis = "concurrency"
levels = [1, 2]
"""
LIMIT = '[[target.limit]]\nname = "pool"\nuse = "in_use"\n'


def study(tables: str) -> Study:
    return parse(STUDY.format(tables=tables))


def test_what_is_declared_is_read_and_written_again() -> None:
    declared = study(
        '[[target.metrics]]\nprometheus = "http://127.0.0.1:{port}/metrics"\nselect = ["in_use", "size"]\n'
        '[[target.metrics]]\njson = "http://127.0.0.1:9000/stats?x=1"\ncounters = ["done"]\nrequests = ["done"]\n'
        '[[target.metrics]]\ncommand = ["stats", "{port}"]\n'
        + LIMIT
        + 'ceiling = "size"\nraise = "pool"\n[[target.limit]]\nname = "queue"\nuse = "queued"\nceiling = 100\n'
    )
    assert declared.target.metrics[0].address == Address("127.0.0.1", None, "/metrics")
    assert declared.target.metrics[1].address == Address("127.0.0.1", 9000, "/stats?x=1")
    assert declared.target.limit[0].raises == "pool" and declared.target.limit[1].ceiling == 100
    assert declared.target.exposed_names == {
        "in_use": "target.limit pool",
        "size": "target.limit pool",
        "queued": "target.limit queue",
    }
    assert parse(declared.as_toml()) == declared


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ("[[target.metrics]]\ncounters = []", "prometheus, json, command or stages"),
        ('[[target.metrics]]\nprometheus = "http://a/"\njson = "http://a/"', "prometheus and json"),
        ('[[target.metrics]]\nprometheus = "https://127.0.0.1/metrics"', "TLS"),
        ('[[target.metrics]]\nprometheus = "http://me:secret@127.0.0.1/metrics"', "accounts"),
        ('[[target.metrics]]\nprometheus = "http://127.0.0.1:99999/metrics"', "no address"),
        ('[[target.metrics]]\nprometheus = "http://127.0.0.1:0/metrics"', "port 0"),
        ('[[target.metrics]]\nprometheus = "http://127.0.0.1/a b"', "%XX"),
        ('[[target.metrics]]\nprometheus = "/metrics"', "not http"),
        ("[[target.metrics]]\ncommand = []", "names no program"),
        ('[[target.metrics]]\ncommand = ["a"]\nwhat = 1', "unknown key"),
        ('[[target.metrics]]\ncommand = ["a"]\n' * 9, "8"),
        (LIMIT, "'target.limit.ceiling' is missing"),
        (LIMIT + 'ceiling = ""', "name of a metric, or a number above 0"),
        (LIMIT + "ceiling = -1.0", "above 0"),
        ((LIMIT + 'ceiling = "size"\n') * 2, "two limits are called 'pool'"),
        ('[[target.limit]]\nname = "parallelism"\nuse = "a"\nceiling = 1', "a finding of Loadframe's own"),
        ('[[target.limit]]\nname = "A b"\nuse = "a"\nceiling = 1', "underscores only"),
    ],
)
def test_what_cannot_be_meant_is_refused(tables: str, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        study(tables)


def test_an_address_says_where() -> None:
    assert address_of("http://localhost") == Address("localhost", 80, "/")
    assert address_of("http://[::1]:9/m?a=b") == Address("::1", 9, "/m?a=b")


def test_counters_on_another_machine_take_the_consent_of_its_owner() -> None:
    elsewhere = '[[target.metrics]]\nprometheus = "http://192.0.2.7:9100/metrics"\n'
    with pytest.raises(StudyError, match=r"192\.0\.2\.7 is not this machine.*its counters are read"):
        check_consent(study(elsewhere))
    agreed = study(elsewhere).model_copy(
        update={"target": study(elsewhere).target.model_copy(update={"authorised": True, "owner": "Ann"})}
    )
    check_consent(agreed)
    check_consent(study('[[target.metrics]]\nprometheus = "http://127.0.0.1:9100/metrics"\n'))
