"""Alternatives of a study are read, kept, and refused where they cannot be measured beside its target."""

from __future__ import annotations

import pytest

from loadframe.bench.checking import check_study
from loadframe.errors import StudyError
from loadframe.study import parse
from loadframe.workloads.oltp import Oltp

STUDY = """\
[study]
name = "queue"
question = "How many?"
[target]
kind = "sqlite"
[workload]
kind = "job-queue"
[load]
axis = "concurrency"
levels = [1]
"""


def test_alternatives_survive_being_written() -> None:
    study = parse(STUDY + '[[alternative]]\nname = "wal"\ntarget = { settings = { journal_mode = "wal" } }\n')
    assert study.alternative[0].target.settings == {"journal_mode": "wal"}
    assert parse(study.as_toml()) == study
    check_study(study)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('name = "Wal"', ["lower-case"]),
        ('nmae = "wal"', ["nmae", "name"]),
        ('name = "a"\n[[alternative]]\nname = "a"', ["two alternatives", "'a'"]),
        ('name = "a"\ncage = { memory = "1GiB" }', ["memory"]),
    ],
)
def test_a_wrong_alternative_is_refused_with_its_line(text: str, words: list[str]) -> None:
    with pytest.raises(StudyError) as caught:
        parse(f"{STUDY}[[alternative]]\n{text}\n")
    for word in [*words, "line 1"]:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('target = { kind = "mariadb" }', "mariadb"),
        ('target = { settings = { jurnal_mode = "wal" } }', "jurnal_mode"),
        ("cage = { open_files = 100 }", "open_files"),
    ],
)
def test_what_cannot_be_measured_side_by_side_is_refused(text: str, word: str) -> None:
    study = parse(f'{STUDY}[[alternative]]\nname = "other"\n{text}\n')
    with pytest.raises(StudyError, match=word):
        check_study(study)


BESIDE = """\
[study]
name = "two"
question = "Which?"
[target]
kind = "{kind}"
{shards}
[workload]
kind = "oltp"
[load]
axis = "concurrency"
levels = [1]
[[alternative]]
name = "other"
target = {{ kind = "{other}" }}
"""


@pytest.mark.parametrize(
    ("kind", "shards", "other", "words"),
    [
        ("mariadb", "", "sqlite", "cannot load a target of kind 'sqlite'"),
        ("mariadb", "", "oracle", "cannot load a target of kind 'oracle'"),
        ("postgres", "shards = 2", "mariadb", "in several pieces"),
    ],
)
def test_another_kind_has_to_fit(
    kind: str, shards: str, other: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Oltp, "target_kinds", Oltp.target_kinds | {"sharded postgres"})
    with pytest.raises(StudyError, match=words):
        check_study(parse(BESIDE.format(kind=kind, shards=shards, other=other)))
