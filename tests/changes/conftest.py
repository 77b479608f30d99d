"""A machine whose settings are files of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadframe.changes import host

FILES = {
    "proc/sys/vm/dirty_ratio": "20\n",
    "proc/sys/vm/dirty_bytes": "0\n",
    "proc/sys/vm/swappiness": "60\n",
    "proc/sys/vm/min_free_kbytes": "67584\n",
    "proc/sys/net/core/somaxconn": "4096\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_available_governors": "performance powersave\n",
    "sys/devices/system/cpu/cpu11/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpu11/cpufreq/scaling_available_governors": "performance powersave\n",
    "sys/devices/system/cpu/cpufreq/boost": "1\n",
    "sys/block/vda/queue/scheduler": "[none] mq-deadline\n",
    "sys/block/vda/queue/nr_requests": "128\n",
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of such a machine; whoever asks for this machine gets that one."""
    root = tmp_path / "machine"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    monkeypatch.setattr(host, "ROOT", root)
    monkeypatch.setenv("LOADFRAME_STATE", str(tmp_path / "state"))
    return root
