"""A config.ini of others as a private cluster."""

from __future__ import annotations

from pathlib import Path

from loadframe_ndb.config import cluster_of, read_config
from loadframe_ndb.own_settings import as_private, config_text

STORY = (Path(__file__).with_name("data") / "story.ini").read_text()
MIXED = """
[ndbd default]
noofreplicas=2
DataMemory=1G
DataDir=/var/lib/cluster
[tcp default]
SendBufferMemory=4M
[ndb_mgmd]
NodeId=49
HostName=mgm.example
[ndbd]
NodeId=5
HostName=db1.example
[ndbd]
NodeId=7
HostName=db2.example
SchedulerSpinTimer=50
EncryptedFileSystem=1
[mysqld]
BatchSize=64
[tcp]
NodeId1=5
NodeId2=7
SendBufferMemory=8M
"""


def test_the_storys_cluster_has_its_settings_and_nodes() -> None:
    found = as_private(cluster_of(read_config(STORY)))
    assert found.settings["MaxNoOfExecutionThreads"] == 8
    assert found.settings["LockExecuteThreadToCPU"] == "0-5"
    assert found.settings["NoOfReplicas"] == 1
    assert (len(found.shape.data), len(found.shape.api)) == (1, 9)
    assert found.left_out == ()


def test_numbers_and_settings_of_single_nodes_stay_and_places_do_not() -> None:
    found = as_private(cluster_of(read_config(MIXED)))
    assert found.shape.management == 49
    assert found.shape.data == (5, 7)
    assert found.settings == {"NoOfReplicas": 2, "DataMemory": 1 << 30, "tcp_SendBufferMemory": 4 << 20}
    assert found.shape.own == {7: {"SchedulerSpinTimer": 50}, 8: {"api_BatchSize": 64}}
    assert found.left_out == ("ndbd.EncryptedFileSystem", "tcp.NodeId1", "tcp.NodeId2", "tcp.SendBufferMemory")
    text = config_text(found.shape, found.settings, port=1, folders={})
    written = cluster_of(read_config(text))
    assert [node.number("SchedulerSpinTimer") for node in written.data_nodes] == [0, 50]
    assert "example" not in text
    assert "/var" not in text
