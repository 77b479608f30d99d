"""The machine, as far as it matters for the numbers. Readers take a root path, so tests run on a recorded tree."""

import os
import platform
import re
from pathlib import Path

from loadframe.cages.groups import text
from loadframe.model import Host


def read_host(root: Path = Path("/")) -> Host:
    """This machine now; what cannot be read is left out of the facts."""
    cpuinfo = text(root / "proc/cpuinfo")
    model = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.M)
    memory = re.search(r"^MemTotal:\s+(\d+) kB", text(root / "proc/meminfo"), re.M)
    huge = re.search(r"\[(\w+)\]", text(root / "sys/kernel/mm/transparent_hugepage/enabled"))
    release = re.search(r'^PRETTY_NAME="?([^"\n]+)', text(root / "etc/os-release"), re.M)
    facts = {
        "system": release[1] if release else "",
        "governor": text(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip(),
        "huge pages": huge[1] if huge else "",
        "python": platform.python_version(),
    }
    return Host(
        hostname=text(root / "proc/sys/kernel/hostname").strip(),
        kernel=text(root / "proc/sys/kernel/osrelease").strip(),
        cpu_model=model[1].strip() if model else platform.machine(),
        cpus=len(os.sched_getaffinity(0)) if root == Path("/") else len(re.findall(r"^processor", cpuinfo, re.M)),
        memory_bytes=int(memory[1]) * 1024 if memory else 0,
        virtualisation="virtual machine" if re.search(r"^flags.*\bhypervisor\b", cpuinfo, re.M) else "none seen",
        facts={name: value for name, value in facts.items() if value},
    )
