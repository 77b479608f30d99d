"""What must not be cut short is not."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from loadframe.host.signals import STOPPING, undisturbed


@pytest.fixture
def another_thread() -> Iterator[None]:
    """That blocks no signal, as those of the libraries that we use."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait, daemon=True)
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

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]


def test_what_is_ignored_stays_ignored(capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with undisturbed("Wait."):
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert capfd.readouterr().err == ""


@pytest.mark.usefixtures("ctrl_c")
def test_the_user_reads_at_once_what_is_waited_for(capfd: pytest.CaptureFixture[str]) -> None:
    said = []
    with pytest.raises(KeyboardInterrupt), undisturbed("Putting back x."):
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)
            said.append(capfd.readouterr().err)
    assert said == ["Putting back x.\n", ""]
