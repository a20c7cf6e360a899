"""grad_store.py: the mapping, accumulation, ownership, failures."""

import copy
import doctest
import pickle

import numpy as np
import pytest

from tenferro import grad_store
from tenferro.errors import (
    DTypeMismatchError,
    InvalidArgumentError,
    RuntimeStateError,
    ShapeMismatchError,
    UnsupportedDTypeError,
)
from tenferro.grad_store import GradStore
from tenferro.ids import new_tensor_id

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
DTYPES = ["f4", "f8", "c8", "c16"]


class Leaf:
    """What a store sees of a tensor."""

    dtype, shape = np.dtype(float), ()

    def __init__(self):
        self.id = new_tensor_id()


def store_of(**grads):
    store = GradStore()
    for name, grad in grads.items():
        store.insert(name, np.array(grad, float))
    return store


def contents(store):
    return {key: grad.tolist() for key, grad in store.items()}


# ------------------------------------------------------------------ the mapping


def test_empty():
    store = GradStore()
    assert len(store) == 0 and store.is_empty() and not store and list(store) == []
    assert store.get("w") is None and store.get("w", 5) == 5 and store.remove("w") is None
    assert "w" not in store and not store.contains("w")
    with pytest.raises(KeyError, match="no gradient under 'w'"):
        store["w"]
    assert repr(store) == "GradStore({})"


def test_mapping_in_insertion_order():
    store = store_of(b=[1.0], a=[2.0, 3.0])
    store.insert("c", 4.0)
    store.insert("b", [5.0])
    store.accumulate("a", [1.0, 1.0])
    assert list(store) == list(store.keys()) == ["b", "a", "c"]
    assert [g.tolist() for g in store.values()] == [[5.0], [3.0, 4.0], 4.0]
    assert contents(store) == {"b": [5.0], "a": [3.0, 4.0], "c": 4.0}
    assert len(store) == 3 and not store.is_empty() and "a" in store and store.contains("a")
    assert repr(store) == "GradStore({'b': float64[1], 'a': float64[2], 'c': float64[]})"
    assert store.remove("b").tolist() == [5.0] and list(store) == ["a", "c"]
    store.insert("b", [6.0])
    assert list(store) == ["a", "c", "b"]
    store.clear()
    assert store.is_empty() and store.get("a") is None
    assert isinstance(store.keys() & {"a"}, set)


def test_a_tensor_is_accepted_for_its_id():
    x, y = Leaf(), Leaf()
    store = GradStore()
    store.insert(x, [1.0])
    store.accumulate(x.id, [2.0])
    store.try_accumulate(x, [3.0])
    store.accumulate_or_insert(y, [9.0])
    assert store[x].tolist() == store.get(x.id).tolist() == [6.0]
    assert x in store and x.id in store and store.contains(y)
    assert list(store) == [x.id, y.id]
    assert store.remove(x).tolist() == [6.0] and x not in store


@pytest.mark.parametrize("method", ["get", "insert", "contains", "remove", "accumulate", "try_accumulate",
                                    "accumulate_or_insert", "__getitem__", "__contains__"])  # fmt: skip
def test_a_key_that_is_not_hashable(method):
    store = store_of(w=[1.0])
    grads = [[1.0]] if "insert" in method or "accumulate" in method else []
    with pytest.raises(InvalidArgumentError) as caught:
        getattr(store, method)(["w"], *grads)
    assert isinstance(caught.value, ValueError)
    assert (
        "list" in caught.value.given and "id" in caught.value.expected and "EagerTensor" in str(caught.value)
    )
    assert contents(store) == {"w": [1.0]}


class Awkward:
    """A key with an identity hash that all keys share and an equality that may raise."""

    angry = False

    def __hash__(self):
        return 7

    def __eq__(self, other):
        if Awkward.angry:
            raise RuntimeError("no comparison today")
        return self is other


def test_awkward_keys():
    store = GradStore()
    keys = [Awkward() for _ in range(5)] + [7, None, float("nan"), (), ("a", 1), b"w", np.float64(7.5)]
    for n, key in enumerate(keys):
        store.accumulate(key, float(n))
        store.accumulate(key, float(n))
    assert [store[key].item() for key in keys] == [2.0 * n for n in range(len(keys))]
    Awkward.angry = True
    try:
        with pytest.raises(RuntimeError, match="no comparison"):
            store.accumulate(Awkward(), 1.0)
    finally:
        Awkward.angry = False
    assert [store[key].item() for key in keys] == [2.0 * n for n in range(len(keys))]


def test_iteration_is_over_a_snapshot():
    store = store_of(a=[1.0], b=[2.0])
    for key in store:
        store.insert(key + "2", [0.0])
    items = store.items()
    store.clear()
    assert {k: v.tolist() for k, v in items} == {"a": [1.0], "b": [2.0], "a2": [0.0], "b2": [0.0]}


def test_equality_is_identity():
    a, b = store_of(w=[1.0, 2.0]), store_of(w=[1.0, 2.0])
    assert a == a and a != b and len({a, b}) == 2


# --------------------------------------------------------------- accumulation


@pytest.mark.parametrize("name", ["accumulate", "try_accumulate"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (0,), (2, 0, 3)])
def test_sum(name, dtype, shape):
    store, rng = GradStore(), np.random.default_rng(0)
    parts = [rng.normal(size=shape).astype(dtype) for _ in range(4)]
    expected = parts[0].copy()
    for n, part in enumerate(parts):
        getattr(store, name)("w", part)
        if n:
            expected = expected + part
    assert store["w"].dtype == np.dtype(dtype) and store["w"].shape == shape
    np.testing.assert_array_equal(store["w"], expected)
    assert isinstance(store["w"], np.ndarray)


@pytest.mark.parametrize("name", ["accumulate", "try_accumulate"])
def test_add_fn_is_called_once_in_order_and_only_where_there_is_a_gradient(name):
    store, calls = GradStore(), []

    def add_fn(existing, new):
        calls.append((existing.tolist(), new.tolist()))
        return existing * 10 + new

    for g in ([1.0], [2.0], [3.0]):
        getattr(store, name)("w", np.array(g), add_fn)
    assert calls == [([1.0], [2.0]), ([12.0], [3.0])] and store["w"].tolist() == [123.0]
    getattr(store, name)("w", [1.0], add_fn=np.subtract)
    assert store["w"].tolist() == [122.0]


def test_accumulate_or_insert_overwrites():
    store = store_of(w=[1.0])
    store.accumulate_or_insert("w", [5.0, 6.0])
    assert store["w"].tolist() == [5.0, 6.0]


def test_accumulate_adds_as_numpy_does():
    store = store_of(w=[[1.0, 2.0]])
    store.accumulate("w", [[1.0], [2.0]])
    assert store["w"].tolist() == [[2.0, 3.0], [3.0, 4.0]]
    store.accumulate("w", np.array(1j))
    assert store["w"].dtype == np.complex128 and store["w"][0, 0] == 2 + 1j
    store.insert("w", np.ones(2, "f4"))
    store.accumulate("w", np.ones(2))
    assert store["w"].dtype == np.float64 and store["w"].tolist() == [2.0, 2.0]
    store.accumulate("w", np.ones(2, "f4"))
    assert store["w"].dtype == np.float64 and store["w"].tolist() == [3.0, 3.0]
    store.insert("b", 1.0)
    store.accumulate("b", np.float32(2.0))
    assert store["b"].shape == () and store["b"] == 3.0


def test_accumulate_of_shapes_that_do_not_go_together():
    store = store_of(w=[1.0, 2.0])
    with pytest.raises(ShapeMismatchError) as caught:
        store.accumulate("w", [1.0, 2.0, 3.0])
    error = caught.value
    assert (error.given, error.expected, error.argument) == ((3,), (2,), "grad")
    assert "broadcast_to" in str(error) and contents(store) == {"w": [1.0, 2.0]}


@pytest.mark.parametrize(
    "grad", [np.ones((1, 2)), np.ones(1), np.array(1.0), np.ones((2, 2)), np.zeros((0, 2))]
)
def test_try_accumulate_does_not_broadcast(grad):
    store = store_of(w=[1.0, 2.0])
    with pytest.raises(ShapeMismatchError) as caught:
        store.try_accumulate("w", grad)
    error = caught.value
    assert isinstance(error, ValueError) and (error.given, error.expected) == (grad.shape, (2,))
    assert "broadcast_to" in error.remedy and contents(store) == {"w": [1.0, 2.0]}


def test_try_accumulate_keeps_the_dtype():
    store = GradStore()
    store.insert("w", np.ones(2, "f4"))
    for grad in (np.ones(2), np.ones(2, "c8")):
        with pytest.raises(DTypeMismatchError) as caught:
            store.try_accumulate("w", grad)
        error = caught.value
        assert isinstance(error, TypeError) and isinstance(error, ValueError)
        assert (error.given, error.expected) == (grad.dtype, np.float32)
        assert "astype(numpy.float32)" in str(error)
    assert store["w"].tolist() == [1.0, 1.0] and store["w"].dtype == np.float32
    store.insert("v", np.ones(2))
    store.try_accumulate("v", np.ones(2, "f4"))
    assert store["v"].tolist() == [2.0, 2.0] and store["v"].dtype == np.float64


def test_try_accumulate_checks_what_add_fn_returns():
    store = store_of(w=[1.0, 2.0])
    with pytest.raises(ShapeMismatchError) as caught:
        store.try_accumulate("w", [1.0, 2.0], lambda a, b: np.add.outer(a, b))
    assert (caught.value.given, caught.value.expected) == ((2, 2), (2,)) and "add_fn" in caught.value.argument
    with pytest.raises(DTypeMismatchError):
        store.try_accumulate("w", [1.0, 2.0], lambda a, b: a + 1j * b)
    assert contents(store) == {"w": [1.0, 2.0]}
    store.try_accumulate("w", np.ones((1, 2)), lambda a, b: a + b[0])
    store.accumulate("w", [1.0, 1.0], lambda a, b: np.add.outer(a, b))
    assert store["w"].shape == (2, 2)


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize("grad", [[1, 2], [True], "w", None, object(), np.array([1], "M8[s]"), [None], True,
                                  np.ones(2, "f2"), {}, np.zeros(1, [("a", "f8")])])  # fmt: skip
@pytest.mark.parametrize("method", ["insert", "accumulate", "try_accumulate", "accumulate_or_insert"])
def test_a_gradient_of_another_dtype(method, grad):
    store = store_of(w=[1.0])
    for key in ("w", "new"):
        with pytest.raises(UnsupportedDTypeError) as caught:
            getattr(store, method)(key, grad)
        error = caught.value
        assert isinstance(error, TypeError) and error.dtype == np.asarray(grad).dtype
        assert error.argument == "grad" and ".astype(float)" in str(error)
    assert contents(store) == {"w": [1.0]}


def test_an_integer_scalar_is_taken_as_float64():
    store = GradStore()
    for one in (1, np.int32(1)):
        store.accumulate("w", one)
    assert store["w"] == 2.0 and store["w"].dtype == np.float64


@pytest.mark.parametrize("add_fn", [5, "add", [np.add]])
def test_an_add_fn_that_cannot_be_called(add_fn):
    store = GradStore()
    for name in ("accumulate", "try_accumulate"):
        with pytest.raises(InvalidArgumentError) as caught:
            getattr(store, name)("w", 1.0, add_fn)
        assert type(add_fn).__name__ in caught.value.given and "callable" in caught.value.remedy
    assert store.is_empty()


# ------------------------------------------------------------------ failures


@pytest.mark.parametrize("name", ["accumulate", "try_accumulate"])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
def test_add_fn_that_raises_changes_nothing(name, error):
    store, seen = store_of(w=[1.0, 2.0], v=[3.0]), []

    def add_fn(existing, new):
        seen.append(existing)
        raise error("in the middle")

    for _ in range(2):
        with pytest.raises(error, match="in the middle"):
            getattr(store, name)("w", [5.0, 5.0], add_fn)
        assert contents(store) == {"w": [1.0, 2.0], "v": [3.0]}
    store.accumulate("w", [1.0, 1.0])
    assert store["w"].tolist() == [2.0, 3.0] and seen[0].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("result", [None, [1, 2], "sum", object()])
def test_add_fn_that_returns_no_gradient(result):
    store = store_of(w=[1.0])
    with pytest.raises(UnsupportedDTypeError) as caught:
        store.accumulate("w", [1.0], lambda existing, new: result)
    assert caught.value.argument == "the result of add_fn" and contents(store) == {"w": [1.0]}


def test_a_gradient_that_cannot_be_read_changes_nothing():
    class Sour:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("not now")

    store = store_of(w=[1.0])
    for method in (store.insert, store.accumulate, store.try_accumulate):
        with pytest.raises(RuntimeError, match="not now"):
            method("w", Sour())
    assert contents(store) == {"w": [1.0]}


def test_add_fn_may_use_the_store_but_not_write_its_own_gradient():
    store = store_of(w=[1.0], v=[2.0])

    def reads_and_writes_others(existing, new):
        assert store["w"].tolist() == [1.0] and len(store) == 2
        store.accumulate("v", new)
        store.insert("u", existing)
        return existing + new

    store.accumulate("w", [10.0], reads_and_writes_others)
    assert contents(store) == {"w": [11.0], "v": [12.0], "u": [1.0]}
    writes = [
        lambda: store.accumulate("w", [1.0]),
        lambda: store.try_accumulate("w", [1.0], np.add),
        lambda: store.insert("w", [1.0]),
        lambda: store.remove("w"),
        lambda: store.clear(),
        lambda: store.merge(store_of(w=[1.0])),
    ]
    for write in writes:
        with pytest.raises(RuntimeStateError) as caught:
            store.accumulate("w", [10.0], lambda existing, new, write=write: write())
        error = caught.value
        assert isinstance(error, RuntimeError) and "'w'" in error.given and "add_fn" in error.given
        assert "return the new gradient" in str(error)
        assert contents(store) == {"w": [11.0], "v": [12.0], "u": [1.0]}
    store.accumulate("w", [1.0])
    assert store["w"].tolist() == [12.0]


# --------------------------------------------------------- merge, copy, pickle


def test_merge():
    a, b = store_of(w=[1.0, 2.0], v=[3.0]), store_of(u=[7.0], w=[10.0, 20.0])
    a.merge(b)
    assert contents(a) == {"w": [11.0, 22.0], "v": [3.0], "u": [7.0]} and list(a) == ["w", "v", "u"]
    assert contents(b) == {"u": [7.0], "w": [10.0, 20.0]}
    a.accumulate("u", [1.0])
    b.accumulate("u", [2.0])
    assert a["u"].tolist() == [8.0] and b["u"].tolist() == [9.0]
    a.merge(GradStore())
    a.merge(a)
    assert contents(a) == {"w": [22.0, 44.0], "v": [6.0], "u": [16.0]}


@pytest.mark.parametrize(("bad", "error"), [([1.0], ShapeMismatchError), ([[1.0, 1.0]], ShapeMismatchError),
                                            ([1j, 1j], DTypeMismatchError)])  # fmt: skip
def test_a_merge_that_fails_changes_nothing(bad, error):
    a, b = store_of(v=[3.0], w=[1.0, 2.0]), GradStore()
    b.insert("v", [1.0])
    b.insert("new", [1.0])
    b.insert("w", bad)
    with pytest.raises(error):
        a.merge(b)
    assert contents(a) == {"v": [3.0], "w": [1.0, 2.0]} and len(b) == 3


@pytest.mark.parametrize("other", [{"w": np.ones(1)}, None, [1.0]])
def test_merge_takes_a_store(other):
    with pytest.raises(InvalidArgumentError) as caught:
        GradStore().merge(other)
    assert type(other).__name__ in caught.value.given and "GradStore" in caught.value.expected
    assert caught.value.op == "merge" and "insert" in caught.value.remedy


@pytest.mark.parametrize("protocol", range(2, 6))
def test_pickle(protocol):
    x = Leaf()
    store = store_of(w=[1.0, 2.0])
    store.insert(x, np.asfortranarray(np.ones((2, 3), "f4")))
    twin = pickle.loads(pickle.dumps(store, protocol))
    assert list(twin) == ["w", x.id] and twin[x].dtype == np.float32 and twin[x].flags.f_contiguous
    twin.accumulate("w", [1.0, 1.0])
    assert twin["w"].tolist() == [2.0, 3.0] and store["w"].tolist() == [1.0, 2.0]


def test_pickle_out_of_band_does_not_share():
    store, buffers = store_of(w=[1.0, 2.0]), []
    data = pickle.dumps(store, 5, buffer_callback=buffers.append)
    own = [bytearray(b) for b in buffers]
    twin = pickle.loads(data, buffers=own)
    for buffer in own:
        buffer[:] = bytes(len(buffer))
    twin.accumulate("w", [1.0, 1.0])
    assert twin["w"].tolist() == [2.0, 3.0] and all(not any(b) for b in own)
    assert store["w"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_copies_are_independent(duplicate):
    key = Awkward()
    store = store_of(w=[1.0])
    store.insert(key, [2.0])
    twin = duplicate(store)
    assert list(twin)[1] is key
    store.accumulate("w", [1.0])
    twin.accumulate(key, [1.0])
    twin.insert("new", [1.0])
    assert [g.tolist() for g in store.values()] == [[2.0], [2.0]]
    assert [g.tolist() for g in twin.values()] == [[1.0], [3.0], [1.0]]


def test_examples():
    assert doctest.testmod(grad_store, optionflags=FLAGS).failed == 0
