"""What must not be cut short is not."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from loadframe.cage.signals import STOPPING, undisturbed


@pytest.fixture
def another_thread() -> Iterator[None]:
    """That blocks no signal, as those of the libraries that we use."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    yield
    over.set()
    thread.join()


@pytest.mark.usefixtures("ctrl_c", "another_thread")
def test_ctrl_c_comes_after_what_must_not_be_cut_short() -> None:
    done: list[int] = []
    before = [signal.getsignal(number) for number in STOPPING]
    with pytest.raises(KeyboardInterrupt), undisturbed():
        for number in (1, 2):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)  # the kernel may take its time to give it to the other thread
            done.append(number)
    assert done == [1, 2]
    assert [signal.getsignal(number) for number in STOPPING] == before


def test_in_another_thread_nothing_is_changed() -> None:
    seen: list[object] = []

    def work() -> None:
        with undisturbed():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]
