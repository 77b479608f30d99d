"""A second user: exchanges two names, a folder and a link for it, over and over until its input ends.

    python -I -S swapper.py UID NAME OTHER_NAME

It is started by root and gives root up. Prints `ready` once it has begun, and at its end how often it exchanged them.
Standard library only; all is imported before root is given up.
"""

import ctypes
import os
import select
import sys
import time

AT_FDCWD, RENAME_EXCHANGE = -100, 2


def main(uid: str, name: str, other: str) -> None:
    renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    os.setgroups([])
    os.setgid(int(uid))
    os.setuid(int(uid))
    done, until = 0, time.monotonic() + 30
    while (done or time.monotonic() < until) and not (select.select([0], [], [], 0)[0] and not os.read(0, 1)):
        if renameat2(AT_FDCWD, name.encode(), AT_FDCWD, other.encode(), RENAME_EXCHANGE) == 0:
            done += 1
            if done == 1:
                print("ready", flush=True)
    print(done, flush=True)


main(*sys.argv[1:])
