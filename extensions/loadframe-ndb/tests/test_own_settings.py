"""The settings of a private cluster, and the config.ini that is written from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadframe.errors import StudyError
from loadframe.model import SettingValue
from loadframe.study import parse
from loadframe_ndb.config import cluster_of, read_config
from loadframe_ndb.config_rules import Case, Hosts, check
from loadframe_ndb.own_settings import CATALOGUE, SETTING_BY_NAME, Shape, checked, config_text

TWO = Shape(data=(2, 3), api=(4, 5))


def written(settings: dict[str, SettingValue], shape: Shape = TWO) -> str:
    folders = {1: Path("/m"), 2: Path("/d1"), 3: Path("/d2")}
    return config_text(shape, checked(settings), port=1234, folders=folders)


def test_a_name_is_taken_in_any_case_and_shown_as_config_ini_has_it() -> None:
    found = checked(
        {"datamemory": "128M", "MAXNOOFEXECUTIONTHREADS": "4", "tcp_sendbuffermemory": "1M", "ODirect": "on"}
    )
    assert found == {
        "DataMemory": 128 << 20,
        "MaxNoOfExecutionThreads": 4,
        "tcp_SendBufferMemory": 1 << 20,
        "ODirect": True,
    }


def test_the_file_has_the_settings_in_their_sections_and_every_node_on_this_machine() -> None:
    text = written({"DataMemory": "128M", "tcp_SendBufferMemory": "1M", "api_BatchSize": 64, "ODirect": True})
    cluster = cluster_of(read_config(text))
    assert [(node.node_id, node.section.kind, node.host) for node in cluster.nodes] == [
        (1, "ndb_mgmd", "localhost"),
        (2, "ndbd", "localhost"),
        (3, "ndbd", "localhost"),
        (4, "mysqld", "localhost"),
        (5, "mysqld", "localhost"),
    ]
    assert "HostName=127.0.0.1" in text
    assert [node.value("DataMemory") for node in cluster.data_nodes] == [128 << 20] * 2
    assert [node.value("DataDir") for node in cluster.data_nodes] == ["/d1", "/d2"]
    assert cluster.data_nodes[0].value("ODirect") is True
    assert cluster.of_kind("mysqld")[1].value("BatchSize") == 64
    assert "[tcp default]\nSendBufferMemory=1M\n" in text
    assert cluster.of_kind("ndb_mgmd")[0].value("PortNumber") == 1234


@pytest.mark.parametrize("name", CATALOGUE.names())
def test_every_setting_can_be_written_so_that_it_is_read_again(name: str) -> None:
    setting = SETTING_BY_NAME[name]
    value: SettingValue = {"cpus": "0-1", "boolean": True, "text": "main,ldm={count=2}"}.get(setting.type, 0)
    if setting.type in ("word", "integer", "bytes"):
        value = setting.choices[-1] if setting.choices else setting.low if setting.low is not None else 1
    text = written({name: value})
    case = Case(cluster_of(read_config(text)), Hosts())
    wrong = [each for each in check(case, "config.ini") if each.rule in ("file", "settings")]
    assert [each.fact for each in wrong if each.severity == "error"] == []
    (section,) = read_config(text).of_kind(setting.section, default=True)
    entry = section.get(setting.name)
    assert entry is not None
    assert setting.read(entry.value) == checked({name: value})[name]


@pytest.mark.parametrize(
    ("name", "value", "right"),
    [
        ("NoOfReplicas", 9, "1 to 4"),
        ("LockExecuteThreadToCPU", "first", "CPU numbers"),
        ("ThreadConfig", "x=1", "not a kind of thread"),
        ("ThreadConfig", "main\nDataDir=/etc", "with commas between"),
        ("Arbitration", "sometimes", "WaitExternal"),
    ],
)
def test_a_value_that_config_ini_does_not_take_is_refused(name: str, value: SettingValue, right: str) -> None:
    with pytest.raises(StudyError, match=name) as caught:
        checked({name: value})
    assert right in caught.value.remedy


@pytest.mark.parametrize(
    "name", ["DataDir", "HostName", "ServerPort", "FileSystemPathDD", "tcp_Proxy", "EncryptedFileSystem", "NodeId"]
)
def test_who_and_where_the_nodes_are_is_no_setting(name: str) -> None:
    with pytest.raises(StudyError, match="no such setting"):
        checked({name: "1"})


def test_a_misspelt_name_is_told_the_right_one() -> None:
    with pytest.raises(StudyError) as caught:
        checked({"data_memori": "1G"})
    assert "DataMemory" in caught.value.remedy


def test_what_a_value_gives_up_is_known_in_both_directions() -> None:
    """A larger interval of global checkpoints loses more; a smaller one does not."""
    spec = CATALOGUE.known("TimeBetweenGlobalCheckpoints")
    assert spec.weakens(30000)
    assert not spec.weakens(100)
    assert CATALOGUE.known("NoOfReplicas").weakens(1)
    assert not CATALOGUE.known("NoOfReplicas").weakens(2)


@pytest.mark.extension("loadframe_tune")
def test_what_has_no_effect_beside_a_given_setting_is_not_varied() -> None:
    from loadframe_tune.space import vary

    study = """
[study]
name = "cluster"
question = "Which settings are better?"
[target]
kind = "ndb"
shards = 1
{settings}
[workload]
kind = "command"
command = ["true"]
[load]
axis = "threads"
levels = [1]
"""
    effective: dict[str, SettingValue] = {"MaxNoOfExecutionThreads": 2, "SchedulerSpinTimer": 0}
    given = 'settings = { ThreadConfig = "main,ldm,recv,rep" }'
    (free, _), (bound, left) = (vary(parse(study.format(settings=text)), effective, 8e9, []) for text in ("", given))
    assert [one.name for one in free.dimensions] == ["MaxNoOfExecutionThreads", "SchedulerSpinTimer"]
    assert [one.name for one in bound.dimensions] == ["SchedulerSpinTimer"]
    assert left["MaxNoOfExecutionThreads"] == "it has no effect where ThreadConfig is given"
