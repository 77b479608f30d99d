"""A server's address is written to the disk before anything is changed: what is read there must be the same server."""

from __future__ import annotations

import pytest

from loadframe.connections.address import joined, parted
from loadframe.errors import StudyError
from loadframe.model import Endpoint
from loadframe.workloads import mariadb


@pytest.mark.parametrize("host", ["db.example", "10.0.0.1", "::1", "fe80::1%eth0"])
def test_what_is_written_is_read_back(host: str) -> None:
    assert parted(joined(host, 3307), "1") == (host, "3307")
    assert parted(host, "3306") == parted(f"[{host}]", "3306") == (host, "3306")
    driven = mariadb.parameters(Endpoint("mariadb", joined(host, 3307)))
    assert (driven["host"], driven["port"]) == (host, "3307")


@pytest.mark.parametrize("address", ["[::1]:0", "[::1]:", "db:", "db:x", "db:" + "9" * 5000, "db:-1", "db:٣"])
def test_what_is_no_port_is_refused(address: str) -> None:
    with pytest.raises(StudyError, match="no port") as told:
        parted(address, "3306")
    assert len(str(told.value)) < 800
