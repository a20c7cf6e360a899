"""The engine under load: long chains, many uses, threads, interruptions, and what is freed when."""

import gc
import hashlib
import pathlib
import shutil
import subprocess
import sys
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import tenferro as tn
from tenferro.errors import RuntimeStateError
from tenferro.primitive import primitive, registry

X = np.array([0.5, 1.5, -2.0])


@pytest.fixture
def clean_registry():
    before = dict(registry)
    yield
    registry.clear()
    registry.update(before)


# ------------------------------------------------------------------------- long graphs


def chain(n):
    def f(x):
        for _ in range(n):
            x = x * 0.999999 + 1e-7
        return x

    return f


@pytest.mark.parametrize("n", [10, 300_000])
def test_long_chain_in_a_small_stack(n):
    """Recording, both modes, a kept graph and its end, in a thread whose stack holds no recursion."""
    found = []

    def work():
        f = chain(n)
        found.append(tn.grad(f)(1.0))
        found.append(tn.jvp(f, (1.0,), (1.0,))[1])
        leaf = tn.tensor(1.0, requires_grad=True)
        y = f(leaf)
        y.backward()
        found.append(float(np.asarray(leaf.grad)))
        del y

    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    np.testing.assert_allclose(found, [0.999999**n] * 3, rtol=1e-9)


def test_one_leaf_used_many_times():
    def f(x):
        s = 0.0
        for _ in range(20_000):
            s = s + x
        return s

    assert tn.grad(f)(2.0) == 20_000.0


def test_reads_of_elements_make_one_array():
    """1000 reads of a large array make one gradient of its size, not 1000."""
    x = np.ones(100_000)
    loss = lambda x: sum((x[i] * x[i + 1] for i in range(1000)), start=0.0)  # noqa: E731
    tn.grad(loss)(x)
    tracemalloc.start()
    try:
        g = tn.grad(loss)(x)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert g[0] == 1 and g[1] == 2 and not g[1001:].any()
    assert peak < 6 * x.nbytes


def test_a_pass_visits_only_what_the_loss_reaches(clean_registry):
    calls = []

    @primitive(name="counted")
    def counted(x):
        return np.asarray(x) * 1.0

    @counted.vjp
    def counted_vjp(g):
        calls.append(1)
        return g

    leaves = [tn.tensor(X, requires_grad=True) for _ in range(2000)]
    others = [counted(t) for t in leaves]
    x = tn.tensor(X, requires_grad=True)
    gradients = np.sum(counted(x)).backward()
    assert len(calls) == 1 and list(gradients) == [x.id]
    assert all(t.grad is None for t in leaves) and len(others) == 2000


def test_no_gradient_that_nobody_asked_for(clean_registry):
    asked = []

    @primitive(name="pair", multilinear=True)
    def pair(a, b):
        return np.asarray(a * b)

    @pair.vjp(0)
    def pair_vjp_a(g, b):
        asked.append("a")
        return g * b

    @pair.vjp(1)
    def pair_vjp_b(g, a):
        asked.append("b")
        return g * a

    tn.grad(lambda a: np.sum(pair(a, X)))(X)
    tn.grad(lambda a, b: np.sum(pair(a, b)), 1)(X, X)
    assert asked == ["a", "b"]
    rt = tn.EagerRuntime()
    a, b = rt.variable_from(X), rt.variable_from(X)
    rt.grad(np.sum(pair(a, b)), a)
    assert asked == ["a", "b", "a"]


# ------------------------------------------------------------------------------ memory


def test_graphs_runtimes_and_gradients_die_without_the_collector():
    gc.collect()
    gc.disable()
    try:
        rt = tn.EagerRuntime()
        x = rt.variable_from(X)
        y = np.exp(x) * x
        loss = np.sum(y)
        loss.backward()
        dead = [weakref.ref(o) for o in (rt, x, y, loss)]
        del rt, x, y, loss
        assert [ref() for ref in dead] == [None] * 4
        tn.hessian(lambda x: np.sum(np.exp(x) * x))(X)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_memory_stays_flat_over_passes():
    f = tn.value_and_grad(lambda x: np.sum(np.exp(x) * x[::-1]))
    leaf = tn.tensor(X, requires_grad=True)

    def passes(n):
        for _ in range(n):
            f(X)
            np.sum(leaf * leaf).backward()
            leaf.clear_grad()

    passes(200)
    gc.collect()
    before = sys.getallocatedblocks()
    passes(2000)
    gc.collect()
    assert sys.getallocatedblocks() - before < 200


def test_functional_pass_frees_as_it_consumes():
    n, steps = 100, 40
    m = np.eye(n) * 0.9

    def f(x):
        for _ in range(steps):
            x = np.tanh(x @ m)
        return np.sum(x)

    x = np.ones((n, n)) * 0.1
    live = []

    @primitive(name="watch", linear=True)
    def watch(x):
        return np.array(x)

    @watch.vjp
    def watch_vjp(g):
        live.append(tracemalloc.get_traced_memory()[0])
        return g

    try:
        tracemalloc.start()
        tn.grad(lambda x: f(watch(x)) + np.sum(watch(x * 0.0)))(x)
        at_the_end = live[-1]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        registry.pop("watch")
    assert peak > steps * x.nbytes  # the tape was there
    assert at_the_end < 0.4 * peak  # and is gone when the walk arrives at the input


def test_freed_graph_is_an_error():
    x = tn.tensor(X, requires_grad=True)
    y = np.sum(x * x)
    y.backward()
    y.backward(retain_graph=False)
    assert np.asarray(x.grad).tolist() == (4 * X).tolist()
    with pytest.raises(RuntimeStateError, match="retain_graph=True"):
        y.backward()
    assert np.asarray(x.grad).tolist() == (4 * X).tolist()


# --------------------------------------------------------------------- interruptions


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_error_in_the_middle_of_a_pass(error):
    a, b = tn.tensor(X, requires_grad=True), tn.tensor(X, requires_grad=True)
    middle = np.exp(a) * b
    loss = np.sum(middle * a)
    loss.backward()
    before = [np.asarray(t.grad).copy() for t in (a, b)]

    def fail(g):
        raise error("in a hook")

    remove = middle.register_hook(fail)
    for _ in range(3):
        with pytest.raises(error):
            loss.backward()
    with pytest.raises(error):
        a.runtime.grad(loss, [a, b])
    for t, was in zip((a, b), before, strict=True):
        np.testing.assert_array_equal(np.asarray(t.grad), was)
    remove()
    loss.backward()
    for t, was in zip((a, b), before, strict=True):
        np.testing.assert_array_equal(np.asarray(t.grad), 2 * was)


def test_error_in_a_rule_of_a_transform(clean_registry):
    @primitive(name="fragile")
    def fragile(x):
        return np.asarray(x) * 2.0

    @fragile.vjp
    def fragile_vjp(g):
        raise ZeroDivisionError

    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            tn.grad(lambda x: np.sum(fragile(x) * x))(X)
        assert tn.grad(lambda x: np.sum(x * x))(X).tolist() == (2 * X).tolist()


def test_pass_inside_a_hook():
    x = tn.tensor(X, requires_grad=True)
    shared = x * 1.0  # both passes walk this node and the leaf
    y = shared * shared
    inner = []
    y.register_hook(lambda g: inner.append(tn.grad(lambda z: np.sum(z**3))(X)))
    y.register_hook(lambda g: inner.append(x.runtime.grad(np.sum(shared**3), x)))
    np.sum(y * y).backward()
    np.testing.assert_allclose(np.asarray(x.grad), 4 * X**3)
    np.testing.assert_allclose(inner[0], 3 * X**2)
    np.testing.assert_allclose(inner[1].numpy(), 3 * X**2)


# ---------------------------------------------------------------------------- threads


def in_threads(n, work):
    found, errors = [None] * n, []

    def run(k):
        try:
            found[k] = work(k)
        except BaseException as e:
            errors.append(e)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=run, args=(k,)) for k in range(n)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []
    return found


def test_nested_transforms_in_threads():
    def work(k):
        f = lambda x: np.sum(np.sin(x * k) * x**2)  # noqa: E731
        return [tn.hessian(f)(X) for _ in range(10)]

    expected = [tn.hessian(lambda x, k=k: np.sum(np.sin(x * k) * x**2))(X) for k in range(4)]
    for found, one in zip(in_threads(4, work), expected, strict=True):
        for h in found:
            np.testing.assert_array_equal(h, one)


def test_one_graph_walked_by_several_threads():
    x = tn.tensor(X, requires_grad=True)
    loss = np.sum(np.exp(x * x) * x)
    expected = np.asarray(loss.backward()[x]).copy()
    x.clear_grad()
    found = in_threads(4, lambda k: [np.asarray(loss.backward()[x]) for _ in range(50)])
    for gradients in found:
        for g in gradients:
            np.testing.assert_array_equal(g, expected)
    np.testing.assert_allclose(np.asarray(x.grad), 200 * expected)


def test_store_accumulated_into_from_threads():
    store = tn.GradStore()
    in_threads(8, lambda k: [store.accumulate("w", np.ones(3)) for _ in range(200)])
    np.testing.assert_array_equal(store.get("w"), [1600.0] * 3)


def test_grad_mode_is_per_thread():
    def work(k):
        x = tn.tensor(X, requires_grad=True)
        seen = []
        for _ in range(50):
            if k % 2:
                with tn.no_grad():
                    seen.append((x * x).requires_grad)
            else:
                seen.append((x * x).requires_grad)
        return set(seen)

    assert in_threads(4, work) == [{True}, {False}, {True}, {False}]
    assert (tn.tensor(1.0, requires_grad=True) * 2).requires_grad


# -------------------------------------------------------------------------- same bits

PROGRAM = """
import hashlib
import numpy as np
import tenferro as tn

r = np.random.default_rng(5)
x, w = r.standard_normal((7, 5)), r.standard_normal((5, 5))
def f(x, w):
    h = np.tanh(x @ w) * x[:, ::-1]
    return np.mean(np.where(h > 0, np.exp(h), h**2)) + np.sum(np.concatenate([h, x]).T.reshape(-1)[[3, 3, 5]])
out = [*tn.value_and_grad(f, (0, 1))(x, w)[1], tn.jvp(f, (x, w), (x, w))[1], tn.hvp(f)(x, w, x)]
leaf = tn.tensor(x, requires_grad=True)
f(leaf, w).backward()
out.append(np.asarray(leaf.grad))
print(hashlib.sha256(b"".join(np.ascontiguousarray(o).tobytes() for o in out)).hexdigest())
print(tn.tape.__file__)
"""


def run_program(folder):
    program = f"import sys; sys.path.insert(0, {str(folder)!r})\n{PROGRAM}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_same_bits_on_every_run_interpreted_and_compiled(tmp_path):
    package = pathlib.Path(tn.__file__).parent
    shutil.copytree(package, tmp_path / "tenferro", ignore=shutil.ignore_patterns("__pycache__", "data"))
    for extension in (tmp_path / "tenferro").glob("*.so"):
        extension.unlink()
    first, second = run_program(package.parent), run_program(package.parent)
    interpreted = run_program(tmp_path)
    assert interpreted[1].endswith(".py")
    assert first[0] == second[0] == interpreted[0]
    assert len(first[0]) == len(hashlib.sha256().hexdigest())
