"""A PostgreSQL of its own that trusts whoever comes: database.py PORT FOLDER"""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path


def main() -> None:
    port, data = sys.argv[1], Path(sys.argv[2], "postgres")
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
    data.mkdir()
    if os.geteuid() == 0:  # which PostgreSQL refuses
        nobody = pwd.getpwnam("nobody")
        os.chown(data, nobody.pw_uid, nobody.pw_gid)
        data.parent.chmod(0o755)
        os.setgroups([])
        os.setgid(nobody.pw_gid)
        os.setuid(nobody.pw_uid)
    make = [str(programs / "initdb"), f"--pgdata={data}", "--username=postgres", "--auth=trust", "--no-sync"]
    # A helper's user is a number without a name, and initdb asks for one: in a name space of its own it is nobody.
    named = ["unshare", "--user", f"--map-user={pwd.getpwnam('nobody').pw_uid}"] if _is_nameless() else []
    subprocess.run([*named, *make], check=True, stdout=subprocess.DEVNULL, cwd=data)
    options = ["-c", f"port={port}", "-c", "unix_socket_directories=", "-c", "fsync=off"]
    server = str(programs / "postgres")  # with its path: it looks for its own files beside itself
    os.execv(server, [server, "-D", str(data), *options])


def _is_nameless() -> bool:
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        return True
    return False


if __name__ == "__main__":
    main()
