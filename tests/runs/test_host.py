"""The machine is described from files, so that a recorded tree gives the same answer everywhere."""

from __future__ import annotations

from pathlib import Path

from loadframe.runs.lines import read_host


def test_a_recorded_tree_is_read(tmp_path: Path) -> None:
    files = {
        "proc/cpuinfo": "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: fpu hypervisor sse\n\nprocessor\t: 1\n",
        "proc/meminfo": "MemTotal:        2048 kB\n",
        "proc/sys/kernel/hostname": "farm\n",
        "proc/sys/kernel/osrelease": "6.1.0\n",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    host = read_host(tmp_path)
    assert (host.hostname, host.kernel, host.cpu_model, host.cpus) == ("farm", "6.1.0", "Some CPU", 2)
    assert host.memory_bytes == 2048 * 1024
    assert host.virtualisation == "virtual machine"
    assert host.facts["huge pages"] == "madvise"
    assert "governor" not in host.facts


def test_an_empty_tree_is_no_error(tmp_path: Path) -> None:
    assert read_host(tmp_path).memory_bytes == 0
