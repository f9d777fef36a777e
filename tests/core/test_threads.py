import os
import signal
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from latem.core import threads
from latem.core.threads import Helper, resolve_threads, run_all, single_threaded_blas


def blas_threads():
    np.ones((2, 2)) @ np.ones((2, 2))
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_limit_is_shared_and_restored():
    before = blas_threads()
    with single_threaded_blas():
        with single_threaded_blas():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_limit_lasts_until_the_last_thread_leaves():
    before = blas_threads()
    inside, leave = threading.Event(), threading.Event()

    def hold():
        with single_threaded_blas():
            inside.set()
            leave.wait(120)

    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(120)
    with single_threaded_blas():
        pass
    assert blas_threads() == {1}
    leave.set()
    thread.join()
    assert blas_threads() == before


@pytest.mark.parametrize("n_threads", [1, 2, 5, None])
def test_every_piece_is_done_once(n_threads):
    done = []
    run_all(done.append, range(20), n_threads)
    assert sorted(done) == list(range(20))


@pytest.mark.parametrize("n_threads", [1, 3])
def test_errors_come_through_and_the_limit_is_lifted(n_threads):
    before = blas_threads()

    def fail(piece):
        raise KeyError(piece)

    with pytest.raises(KeyError):
        run_all(fail, [1, 2], n_threads)
    assert blas_threads() == before


@pytest.mark.skipif(os.name != "posix", reason="elsewhere waiting cannot be interrupted")
def test_an_interruption_waits_for_what_has_begun():
    both, ended = threading.Barrier(2), []

    def task(_):
        both.wait(60)  # a piece for each thread
        if threading.current_thread() is not threading.main_thread():
            time.sleep(0.2)  # the main thread waits by now
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            time.sleep(0.2)
            ended.append(True)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_all(task, [1, 2], 2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended


def test_a_thread_that_is_about_to_begin_is_waited_for(monkeypatch):
    """An interruption may strike while a thread is begun, before it has a number."""
    ended = []
    helper = Helper(lambda: (time.sleep(0.1), ended.append(True)))
    late = threading.Timer(0.1, lambda: threading.Thread.start(helper))
    monkeypatch.setattr(threading.Thread, "start", lambda self: None)
    helper.start()  # as if it were interrupted here
    monkeypatch.undo()
    late.start()
    helper.wait()
    assert ended
    assert not helper.is_alive()


def test_a_thread_that_never_began_is_not_waited_for_long(monkeypatch):
    monkeypatch.setattr(threads, "_BEGINS_WITHIN", 0.05)
    Helper(lambda: None).wait()
    helper = Helper(lambda: None)
    monkeypatch.setattr(threading.Thread, "start", lambda self: None)
    helper.start()
    start = time.monotonic()
    helper.wait()
    assert 0.05 <= time.monotonic() - start < 5


def test_what_an_interruption_left_is_given_up_by_the_next_use():
    before = blas_threads()

    def interrupted():
        single_threaded_blas().__enter__()  # and never comes to its way out

    interrupted()
    assert blas_threads() == {1}
    with single_threaded_blas():
        with single_threaded_blas():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_resolve_threads():
    assert resolve_threads(3) == 3
    assert resolve_threads(None) >= 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_forked_children_can_work():
    done = []
    run_all(done.append, [1, 2], 2)
    child = os.fork()
    if child == 0:
        run_all(done.append, [3, 4], 2)
        os._exit(0 if sorted(done) == [1, 2, 3, 4] else 1)
    for _ in range(1200):
        finished, status = os.waitpid(child, os.WNOHANG)
        if finished:
            break
        time.sleep(0.1)
    else:
        os.kill(child, signal.SIGKILL)
    assert finished
    assert status == 0
