"""grad_store.py from many threads: nothing is lost, snapshots hold, nobody waits for ever."""

import copy
import pickle
import sys
import threading

import numpy as np
import pytest

from tenferro.grad_store import GradStore


def store_of(**grads):
    store = GradStore()
    for name, grad in grads.items():
        store.insert(name, np.array(grad, float))
    return store


def in_threads(work, count=8):
    """Run ``work(k)`` in threads that switch all the time; the first error is raised here."""
    errors, start = [], threading.Barrier(count)

    def run(k):
        try:
            start.wait()
            work(k)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    if errors:
        raise errors[0]


def slowly(existing, new):
    """An addition in several steps, between which threads switch."""
    total = existing.copy()
    for i in range(total.size):
        total[i] = total[i] + new[i]
    return total


@pytest.mark.parametrize("add_fn", [None, slowly, np.add])
def test_nothing_is_lost_between_threads(add_fn):
    store = GradStore()

    def work(k):
        for n in range(60):
            store.accumulate("shared", np.full(3, 1.0), add_fn)
            store.try_accumulate(f"own {k}", [1.0, 1.0, 1.0], add_fn)
            if n % 7 == 0:
                assert store["shared"].shape == (3,)

    in_threads(work)
    assert store["shared"].tolist() == [480.0] * 3
    assert all(store[f"own {k}"].tolist() == [60.0] * 3 for k in range(8)) and len(store) == 9


def test_large_gradients_from_threads():
    store = GradStore()
    in_threads(lambda k: [store.accumulate("w", np.full(50_000, 1.0)) for _ in range(10)])
    assert (store["w"] == 80.0).all()


def test_snapshots_hold_while_others_add():
    store = store_of(w=np.zeros(100))

    def work(k):
        for _ in range(60):
            if k % 2:
                store.accumulate("w", np.ones(100))
            else:
                seen = store["w"]
                before = seen.copy()
                assert (before == before[0]).all()
                for _ in range(5):
                    assert (seen == before).all()

    in_threads(work)
    assert (store["w"] == 240.0).all()


def test_a_merge_that_waits_holds_up_nobody():
    a, b = store_of(w=[0.0]), store_of(w=[0.0])
    merging = threading.Thread(target=a.merge, args=(b,), daemon=True)
    writing = threading.Thread(target=b.insert, args=("v", [1.0]), daemon=True)

    def add_fn(existing, new):
        # a is busy here, so the merge waits; b has to stay usable
        merging.start()
        merging.join(0.1)
        writing.start()
        writing.join(10.0)
        assert merging.is_alive() and not writing.is_alive()
        return existing + new

    a.accumulate("w", [1.0], add_fn)
    merging.join(10.0)
    assert a["w"].tolist() == [1.0] and b["v"].tolist() == [1.0]


def test_stores_that_merge_each_other():
    a, b = store_of(w=[0.0]), store_of(w=[0.0])
    in_threads(lambda k: [(a.merge(b) if k % 2 else b.merge(a)) for _ in range(50)])
    assert a["w"].tolist() == b["w"].tolist() == [0.0]


def test_writers_of_all_kinds_at_once():
    store = GradStore()

    def work(k):
        for n in range(40):
            store.accumulate(n % 5, float(k))
            list(store.items())
            store.remove((n + k) % 5)
            store.merge(copy.copy(store))
            repr(store), pickle.dumps(store)
            store.clear()

    in_threads(work)
    assert store.is_empty() and not store._owned and not store._busy
