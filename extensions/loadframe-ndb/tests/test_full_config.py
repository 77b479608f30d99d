"""What ndb_mgmd 9.7.2 prints of the configuration that the nodes get."""

from __future__ import annotations

from loadframe_ndb.own_settings import read_full_config

PRINTED = """\
MySQL Cluster Management Server mysql-9.7.2 ndb-9.7.2
[SYSTEM]
Name=MC_20261127044421
[ndb_mgmd(MGM)]
HostName=127.0.0.1
NodeId=1
[ndbd(DB)]
NodeId=2
NoOfReplicas=2
DataMemory=83886080
Diskless=1
SpinMethod=StaticSpinning
__sched_scan_priority=16
[ndbd(DB)]
NodeId=3
DataMemory=100663296
[mysqld(API)]
NodeId=4
BatchSize=64
[TCP]
NodeId1=1
NodeId2=2
SendBufferMemory=4194304
"""


def test_settings_have_our_names_and_form_and_the_first_node_counts() -> None:
    assert read_full_config(PRINTED) == {
        "NoOfReplicas": 2,
        "DataMemory": 80 * 2**20,
        "Diskless": True,
        "SpinMethod": "StaticSpinning",
        "api_BatchSize": 64,
        "tcp_SendBufferMemory": 4 * 2**20,
    }


def test_a_default_beyond_the_manuals_bounds_is_told_as_it_is() -> None:
    assert read_full_config("[ndbd(DB)]\nDataMemory=0\nSpinMethod=Other\n") == {"DataMemory": 0, "SpinMethod": "Other"}
    assert read_full_config("no configuration") == {}
