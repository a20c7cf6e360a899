"""grad_store.py: what is stored is the store's own, what is handed out never changes."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from tenferro.errors import InvalidArgumentError
from tenferro.grad_store import GradStore
from tenferro.tensor import Tensor

SWAPPED = np.dtype("f8").newbyteorder("S")


def store_of(**grads):
    store = GradStore()
    for name, grad in grads.items():
        store.insert(name, np.array(grad, float))
    return store


def contents(store):
    return {key: grad.tolist() for key, grad in store.items()}


@pytest.mark.parametrize("method", ["insert", "accumulate", "try_accumulate", "accumulate_or_insert"])
def test_the_caller_cannot_change_what_is_stored(method):
    store, g = GradStore(), np.array([1.0, 2.0])
    getattr(store, method)("w", g)
    g[:] = 9.0
    assert store["w"].tolist() == [1.0, 2.0]
    store.accumulate("w", np.ones(2))
    assert g.tolist() == [9.0, 9.0]


def test_a_read_only_view_of_writable_memory_is_copied_too():
    store, g = GradStore(), np.array([1.0, 2.0])
    view = g.view()
    view.flags.writeable = False
    store.insert("w", view)
    store.insert("t", Tensor.from_numpy(g, copy=False))
    g[:] = 9.0
    assert store["w"].tolist() == store["t"].tolist() == [1.0, 2.0]


def test_what_add_fn_returns_is_copied():
    store, kept = store_of(w=[1.0]), np.array([5.0])
    store.accumulate("w", [1.0], lambda existing, new: kept)
    kept[:] = 9.0
    assert store["w"].tolist() == [5.0]
    store.accumulate("w", [1.0])
    assert kept.tolist() == [9.0] and store["w"].tolist() == [6.0]


def test_add_fn_may_return_or_keep_its_arguments():
    store, new = store_of(w=[1.0]), np.array([2.0])
    kept = []
    store.accumulate("w", new, lambda a, b: (kept.append(a), a)[1])
    store.accumulate("w", new, lambda a, b: b)
    store.accumulate("w", [1.0])
    assert kept[0].tolist() == [1.0] and new.tolist() == [2.0] and store["w"].tolist() == [3.0]


def test_what_a_failing_add_fn_kept_never_changes():
    store, kept = store_of(w=[1.0]), []
    with pytest.raises(AttributeError):
        store.accumulate("w", [1.0], lambda a, b: kept.append(a) or a.nonsense)
    store.accumulate("w", [5.0])
    assert kept[0].tolist() == [1.0] and store["w"].tolist() == [6.0]


def test_add_fn_cannot_write_the_existing_gradient():
    store = store_of(w=[1.0])
    with pytest.raises(ValueError, match="read-only"):
        store.accumulate("w", [1.0], lambda a, b: np.add(a, b, out=a))
    assert contents(store) == {"w": [1.0]}


READERS = {
    "get": lambda s: s.get("w"),
    "item": lambda s: s["w"],
    "items": lambda s: dict(s.items())["w"],
    "values": lambda s: next(iter(s.values())),
    "view of a view": lambda s: s["w"][::-1][::-1],
    "memoryview": lambda s: np.asarray(memoryview(s["w"])),
    "copy": lambda s: copy.copy(s)["w"],
    "deepcopy": lambda s: copy.deepcopy(s)["w"],
}
WRITERS = {
    "accumulate": lambda s: s.accumulate("w", [1.0, 1.0]),
    "add_fn": lambda s: s.accumulate("w", [1.0, 1.0], np.add),
    "insert": lambda s: s.insert("w", [0.0, 0.0]),
    "merge": lambda s: s.merge(store_of(w=[1.0, 1.0])),
    "merge itself": lambda s: s.merge(s),
    "remove": lambda s: s.remove("w"),
    "clear": lambda s: s.clear(),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_what_was_handed_out_never_changes(read, write):
    store = store_of(w=[1.0, 2.0])
    store.accumulate("w", [1.0, 1.0])
    seen = read(store)
    for _ in range(3):
        write(store)
    assert seen.tolist() == [2.0, 3.0]
    assert not seen.flags.writeable
    with pytest.raises(ValueError):
        seen.flags.writeable = True


def test_what_was_removed_never_changes():
    store = store_of(w=[1.0])
    out = store.remove("w")
    store.insert("w", [5.0])
    store.accumulate("w", [5.0])
    assert out.tolist() == [1.0] and not out.flags.writeable


def test_additions_are_in_place_until_somebody_looks():
    store = store_of(w=[1.0])
    buffer = store._grads["w"]
    for _ in range(3):
        store.accumulate("w", [1.0])
    assert store._grads["w"] is buffer and buffer.tolist() == [4.0]
    seen = store["w"]
    store.accumulate("w", [1.0])
    fresh = store._grads["w"]
    assert fresh is not buffer and seen.tolist() == [4.0]
    store.accumulate("w", [1.0])
    assert store._grads["w"] is fresh and fresh.tolist() == [6.0]


def test_a_store_may_be_given_its_own_gradient():
    store = store_of(w=[1.0, 2.0])
    store.accumulate("w", store["w"])
    store.accumulate("w", store["w"][::-1])
    assert store["w"].tolist() == [6.0, 6.0]


# -------------------------------------------------------------------- layouts


def layouts():
    a = np.arange(1.0, 25.0).reshape(2, 3, 4)
    packed = np.zeros((2, 3), np.dtype([("c", "i1"), ("x", "f8")]))
    packed["x"] = 2.0
    read = a.copy()
    read.flags.writeable = False
    return {
        "C": a, "F": np.asfortranarray(a), "permuted": a.transpose(1, 0, 2), "reversed": a[::-1, :, ::-1],
        "strided": a[:, ::2], "column": a[..., 1], "broadcast": np.broadcast_to(a[0], (5, 3, 4)),
        "unaligned": packed["x"], "foreign": a.astype(SWAPPED), "rank 0": np.array(3.0), "read-only": read,
        "empty": np.zeros((3, 0, 2)), "subclass": a.view(type("Sub", (np.ndarray,), {})),
        "windows": as_strided(np.arange(5.0), (3, 3), (8, 8)), "list": [[1.0, 2.0]], "float": 2.5,
        "tensor": Tensor.from_numpy(np.asfortranarray(a)),
    }  # fmt: skip


@pytest.mark.parametrize("name", layouts())
def test_any_layout(name):
    g = layouts()[name]
    plain = np.array(g, float)
    for first, then in ((g, g), (plain, g), (g, plain)):
        store = GradStore()
        store.accumulate("w", first)
        store.accumulate("w", then)
        store.try_accumulate("w", then)
        np.testing.assert_array_equal(store["w"], 3 * plain)
        assert type(store["w"]) is np.ndarray and store["w"].dtype == np.float64 and store["w"].dtype.isnative
    np.testing.assert_array_equal(np.asarray(g), plain)


def test_memory_order_is_kept():
    store = GradStore()
    store.accumulate("w", np.asfortranarray(np.ones((2, 3))))
    store.accumulate("w", np.ones((2, 3)))
    assert store["w"].flags.f_contiguous and not store["w"].flags.c_contiguous
    store.accumulate("w", np.ones((2, 3)))
    assert store["w"].flags.f_contiguous


def test_masked_arrays_are_refused():
    with pytest.raises(InvalidArgumentError, match="filled"):
        GradStore().insert("w", np.ma.masked_array([1.0], [True]))


# -------------------------------------------------------------- against a model

KEYS = st.sampled_from(["a", "b"])
NUMBERS = st.integers(-4, 4).map(float)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), KEYS, NUMBERS),
        st.tuples(
            st.sampled_from(["accumulate", "try_accumulate"]), KEYS, NUMBERS, st.sampled_from([None, np.add])
        ),
        st.tuples(st.sampled_from(["get", "remove"]), KEYS),
        st.tuples(st.sampled_from(["clear", "merge", "copy", "pickle"])),
    ),
    max_size=30,
)


@given(STEPS)
def test_against_a_dictionary(steps):
    store, model, seen = GradStore(), {}, []
    for name, *args in steps:
        if name == "merge":
            store.merge(store)
            model = {key: 2 * value for key, value in model.items()}
        elif name == "copy":
            store = copy.deepcopy(store)
        elif name == "pickle":
            store = pickle.loads(pickle.dumps(store))
        else:
            result = getattr(store, name)(*args)
            if name == "insert":
                model[args[0]] = args[1]
            elif "accumulate" in name:
                model[args[0]] = model.get(args[0], 0.0) + args[1]
            elif name == "clear":
                model.clear()
            else:
                expected = model.get(args[0]) if name == "get" else model.pop(args[0], None)
                assert (result is None) == (expected is None) and (result is None or result == expected)
                if result is not None:
                    seen.append((result, expected))
        assert {key: grad.item() for key, grad in store._grads.items()} == model
        assert list(store) == list(model)
        assert all(array == value for array, value in seen)
