"""Forks the workers of a load: `python -P -m loadframe.workloads.fork_server MODULE DESCRIPTOR` imports MODULE once; a
worker then begins within milliseconds. DESCRIPTOR: a socket (SOCK_SEQPACKET). Each order has the arguments for `main`
of the module and the descriptors that the worker gets, with their numbers. The answer is the worker's pid; "PID STATUS"
follows once it has ended. It ends with the socket, and its workers end with it."""

import ctypes
import fcntl
import gc
import importlib
import json
import os
import signal
import socket
import sys
from contextlib import suppress

LARGEST_BYTES, MOST_DESCRIPTORS = 1 << 17, 16
"""Of an order."""
_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> int:
    module = importlib.import_module(arguments[0])
    library, server = ctypes.CDLL(None), os.getpid()
    gc.freeze()  # a collection in a worker would copy all pages that it shares
    with socket.socket(fileno=int(arguments[1])) as orders:

        def report_ended(*_: object) -> None:
            with suppress(ChildProcessError):  # all of them
                while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                    orders.send(f"{ended[0]} {os.waitstatus_to_exitcode(ended[1])}".encode())

        signal.signal(signal.SIGCHLD, report_ended)
        while True:
            order, descriptors, _, _ = socket.recv_fds(orders, LARGEST_BYTES, MOST_DESCRIPTORS)
            if not order:
                return 0
            try:
                pid = os.fork()
            except OSError as error:
                os.write(descriptors[2], f"{error.strerror}: a process for one more worker\n".encode())
                return 1
            if pid == 0:
                break
            for descriptor in descriptors:
                os.close(descriptor)
            orders.send(str(pid).encode())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    library.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != server:
        return 1
    asked = json.loads(order)
    numbers = asked["descriptors"]
    free = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, max(numbers) + 1) for descriptor in descriptors]
    for descriptor, number in zip(free, numbers, strict=True):
        os.dup2(descriptor, number)
    for descriptor in {*descriptors, *free}.difference(numbers):
        os.close(descriptor)
    status = module.main(asked["arguments"])
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status or 0)  # as multiprocessing does: freeing all that is shared takes 9 ms, in which the step is over


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
