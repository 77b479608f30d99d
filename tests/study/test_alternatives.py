"""Alternatives of a study are read, kept, and refused where they cannot be measured beside its target."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadframe.bench.checking import check_study
from loadframe.errors import MissingTool, StudyError
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
        ("mariadb", "", "oracle", "target.kind = 'oracle' is not known"),
        ("postgres", "shards = 2", "mariadb", "in several pieces"),
    ],
)
def test_another_kind_has_to_fit(
    kind: str, shards: str, other: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Oltp, "target_kinds", Oltp.target_kinds | {"sharded postgres"})
    with pytest.raises(StudyError, match=words):
        check_study(parse(BESIDE.format(kind=kind, shards=shards, other=other)))


CLUSTER = """\
[study]
name = "three"
question = "Which?"
[target]
kind = "mariadb"
{cage}
[workload]
kind = "sysbench"
[load]
axis = "threads"
levels = [1]
"""
OTHER = '[[alternative]]\nname = "{name}"\ntarget = {{ kind = "{kind}"{pieces} }}\n'


def test_a_cluster_beside_a_server_is_caged_in_pieces() -> None:
    cage = '[cage]\nopen_files = 500\ncpu_quota = 1.0\n[cage.shard]\ncpu_quota = 0.5\n[cage.sql2]\nmemory = "1GiB"'
    text = CLUSTER.format(cage=cage) + OTHER.format(
        name="cluster", kind="ndb-sql", pieces=", shards = 2, sql_nodes = 2"
    )
    study = parse(text)
    assert parse(study.as_toml()) == study
    assert study.around("mariadb") is study
    around = study.around("ndb-sql")
    assert (around.target.shards, around.target.sql_nodes, around.target.settings) == (2, 2, {})
    assert around.target_limits == {"cpu.max": 50_000, "sql2.memory.max": 1 << 30}
    assert study.target_limits == {"RLIMIT_NOFILE": 500, "cpu.max": 100_000}


def clustered(cage: str, *pieces: str, kind: str = "ndb-sql") -> str:
    """A study with an alternative of a kind for each of these numbers of pieces."""
    others = (OTHER.format(name=f"other{number}", kind=kind, pieces=each) for number, each in enumerate(pieces))
    return CLUSTER.format(cage=cage) + "".join(others)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (clustered("", ""), "made of several pieces.*does not say how many"),
        (clustered("", ", shards = 1", ", shards = 2"), "another number of pieces"),
        (clustered("", ", shards = 2", kind="postgres"), "cannot load a target of kind 'sharded postgres'"),
        (clustered("", ", shards = 2", kind="mariadb"), "of the study's own kind, mariadb"),
        (clustered("", ", sql_nodes = 2", kind="mysql"), "target.sql_nodes is for a target of kind ndb-sql"),
        (clustered("[cage]\ncpu_quota = 1.0\n", ", shards = 1"), "limits the study's target"),
        (clustered("[cage]\nopen_files = 500\n", ", shards = 1"), "limits the study's target"),
        (clustered("[cage.sql2]\ncpu_quota = 1.0\n", ", shards = 1"), "no component 'sql2'"),
        (clustered("", ", shards = 1").replace('"mariadb"', '"ndb-sql"\nshards = 1'), "number of pieces"),
        (
            clustered("", "", kind="mariadb").replace('kind = "mariadb"', 'kind = "ndb-sql"\nshards = 1', 1),
            "a target in several pieces",
        ),
        (
            clustered("", ", shards = 1") + 'cage = { cpus = "0" }\n',
            "ndb-sql, which is made of several pieces",
        ),
    ],
)
@pytest.mark.extension("loadframe_drivers", "loadframe_ndb")
def test_what_of_a_cluster_does_not_fit_is_refused(text: str, words: str) -> None:
    with pytest.raises(StudyError, match=words):
        check_study(parse(text))


@pytest.mark.extension("loadframe_drivers", "loadframe_ndb")
def test_a_program_that_two_kinds_lack_is_named_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    text = clustered("", ", shards = 1") + OTHER.format(name="mysql", kind="mysql", pieces="")
    with pytest.raises(MissingTool, match=r"mysqld.*which are not installed") as missing:
        check_study(parse(text))
    assert missing.value.fact.count("mysqld") == 1
    assert "mysql-community-server" in missing.value.remedy and "unpack-mysql" in missing.value.remedy
