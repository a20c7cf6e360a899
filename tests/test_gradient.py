"""gradient.py: reading a gradient, and guards."""

import copy
import doctest
import gc
import pickle

import numpy as np
import pytest

from tenferro import gradient
from tenferro.errors import DTypeMismatchError, HostAccessError, RuntimeStateError
from tenferro.gradient import GradientValue, ValueGuard
from tenferro.tensor import Tensor, TensorRead

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


class Alive:
    closed = False


def value_of(*data, dtype=float, alive=None):
    return GradientValue(np.array(data, dtype), alive)


def cannot_be_written(array):
    assert not array.flags.writeable
    with pytest.raises(ValueError):
        array.flags.writeable = True
    with pytest.raises(ValueError):
        array[...] = 0
    base = array.base
    while isinstance(base, np.ndarray):
        with pytest.raises(ValueError):
            base.flags.writeable = True
        base = base.base
    return True


# ---------------------------------------------------------------- GradientValue


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("shape", [(), (1,), (0,), (3,), (2, 3), (2, 0)])
def test_shape_and_values(dtype, shape):
    a = np.arange(float(np.prod(shape))).reshape(shape).astype(dtype)
    g = GradientValue(a)
    assert g.dtype == np.dtype(dtype) and g.shape == shape and g.ndim == len(shape) and g.size == a.size
    np.testing.assert_array_equal(g, a)
    assert g.as_slice(dtype).tolist() == a.ravel().tolist() and g.tolist() == a.tolist()
    if shape:
        assert len(g) == shape[0]
    else:
        with pytest.raises(TypeError):
            len(g)


def test_reads_do_not_copy_and_cannot_be_written():
    a = np.arange(6.0).reshape(2, 3)
    g = GradientValue(a)
    guard = g.value()
    reads = [g.numpy(), np.asarray(g), g.as_slice(float), g[0], next(iter(g))]
    reads += [np.asarray(g.tensor_read()), g.tensor_read().view(), guard.as_array(), guard.as_slice(float)]
    for read in reads:
        assert np.shares_memory(read, a) and cannot_be_written(read)
    assert isinstance(g.tensor_read(), TensorRead)
    assert memoryview(g.tensor_read()).readonly and memoryview(g.tensor_read()).shape == (2, 3)


def test_every_read_is_a_view_of_its_own():
    g = value_of(1.0, 2.0, 3.0, 4.0)
    assert g.numpy() is not g.numpy() and np.asarray(g) is not np.asarray(g)
    with g.value() as guard:
        assert guard.as_array() is not guard.as_array()


def test_as_slice_is_in_memory_order():
    a = np.arange(6.0).reshape(2, 3)
    assert GradientValue(np.asfortranarray(a)).as_slice(float).tolist() == a.T.ravel().tolist()
    assert GradientValue(a).as_slice("float64").tolist() == a.ravel().tolist()
    b = np.arange(24.0).reshape(2, 3, 4).transpose(1, 0, 2)
    assert GradientValue(b).as_slice(float).tolist() == list(range(24))


@pytest.mark.parametrize("dtype", [np.float32, int, complex, object])
@pytest.mark.parametrize("read", [lambda g: g, lambda g: g.value()])
def test_as_slice_of_another_dtype(read, dtype):
    with pytest.raises(DTypeMismatchError) as caught:
        read(value_of(1.0)).as_slice(dtype)
    error = caught.value
    assert isinstance(error, TypeError)
    assert (error.given, error.expected, error.op) == (np.dtype(dtype), np.float64, "as_slice")
    assert "ask for dtype float64" in str(error)


@pytest.mark.parametrize("array", [np.arange(6.0)[::2], np.ones((3, 3))[:, 1], np.broadcast_to(1.0, (2, 3))])
@pytest.mark.parametrize("wrap", [GradientValue, ValueGuard])
def test_as_slice_of_what_is_not_compact(wrap, array):
    with pytest.raises(HostAccessError) as caught:
        wrap(array).as_slice(float)
    error = caught.value
    assert isinstance(error, RuntimeError) and error.shape == error.given == array.shape
    assert "compact" in error.expected and "to_tensor()" in str(error)
    assert GradientValue(array).to_tensor().as_slice(float).size == array.size


def test_to_tensor_is_an_independent_writable_copy():
    a = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    g = GradientValue(a)
    t = g.to_tensor()
    assert isinstance(t, Tensor) and t.dtype == g.dtype and t.shape == g.shape
    t[0, 0] = 9.0
    assert t.numpy()[0, 0] == 9.0 and g.numpy()[0, 0] == 0.0
    assert t.as_slice(float).size == 6


def test_asarray_with_arguments():
    g = value_of(1.0, 2.0)
    own = np.array(g)
    own[0] = 9.0
    assert g.tolist() == [1.0, 2.0]
    assert np.asarray(g, dtype="f4").dtype == np.float32 and np.asarray(g, copy=False).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError):
        np.asarray(g, dtype="f4", copy=False)


def test_arithmetic_gives_plain_arrays():
    g, a, two = value_of(4.0, 6.0), np.array([1.0, 2.0]), [1.0, 2.0]
    results = {
        "g + a": g + a, "a + g": a + g, "g - a": g - a, "a - g": a - g, "g * 2": g * 2, "2 * g": 2 * g,
        "g / a": g / a, "a / g": a / g, "g // 5": g // 5, "13 // g": 13 // g, "g % 4": g % 4, "9 % g": 9 % g,
        "g ** 2": g**2, "2 ** g": 2**g, "-g": -g, "+g": +g, "abs(g)": abs(g), "g + g": g + g,
        "s * g": np.float64(2) * g, "g * s": g * np.float64(2), "l + g": two + g, "g == 4": g == 4,
        "g != 4": g != 4, "g < 5": g < 5, "g <= 4": g <= 4, "g > 5": g > 5, "g >= 6": g >= 6, "5 < g": 5 < g,
    }  # fmt: skip
    names = {"g": np.array([4.0, 6.0]), "a": a, "s": np.float64(2), "l": np.array([1.0, 2.0]), "abs": abs}
    for text, result in results.items():
        assert type(result) is np.ndarray, text
        np.testing.assert_array_equal(result, eval(text, names), err_msg=text)
    assert g @ a == a @ g == 16.0 and (np.ones((2, 2)) @ g).tolist() == [10.0, 10.0]
    assert np.exp(g).tolist() == np.exp([4.0, 6.0]).tolist() and np.sum(g) == 10.0 and np.dot(g, a) == 16.0
    assert g.tolist() == [4.0, 6.0]


def test_dtype_of_arithmetic_is_numpys():
    g = value_of(1.0, 2.0, dtype="f4")
    assert (g * 2.0).dtype == (2.0 * g).dtype == np.float32 and (g + np.ones(2)).dtype == np.float64


def test_in_place_arithmetic_rebinds_or_writes_the_array():
    g = value_of(1.0, 2.0)
    kept, total = g, np.zeros(2)
    g += 1
    assert type(g) is np.ndarray and g.tolist() == [2.0, 3.0] and kept.tolist() == [1.0, 2.0]
    total -= kept
    assert total.tolist() == [-1.0, -2.0]
    with pytest.raises(TypeError):
        kept[0] = 5.0
    with pytest.raises(TypeError):
        np.add(total, 1, out=kept)


class Proud:
    """A class that will not be an operand of NumPy's."""

    __array_ufunc__ = None

    def __radd__(self, other):
        return "proud"

    __rsub__ = __rmatmul__ = __radd__


def test_other_classes_have_their_say():
    g = value_of(1.0)
    assert g + Proud() == g - Proud() == g @ Proud() == "proud"
    with pytest.raises(TypeError):
        g * Proud()


def test_numbers():
    g = value_of(2.5)
    scalar = GradientValue(np.array(2.5))
    assert float(scalar) == scalar.item() == g.item() == 2.5 and complex(scalar) == 2.5 and bool(scalar)
    assert not GradientValue(np.array(0.0))
    with pytest.raises(ValueError, match="ambiguous"):
        bool(value_of(1.0, 2.0))
    with pytest.raises(ValueError):
        value_of(1.0, 2.0).item()
    with pytest.raises(TypeError, match="unhashable"):
        hash(g)


def test_a_numpy_scalar_is_a_gradient_of_rank_0():
    g = GradientValue(np.float32(2.0))
    assert g.shape == () and g.dtype == np.float32 and g.as_slice("f4").tolist() == [2.0]


def test_repr():
    assert repr(value_of(4.0, 6.0)) == "GradientValue([4., 6.], shape=(2,), dtype=float64)"
    assert repr(GradientValue(np.array(1.5, "f4"))) == "GradientValue(1.5, shape=(), dtype=float32)"
    text = repr(GradientValue(np.zeros((3, 2))))
    assert text.splitlines()[1] == "               [0., 0.],"
    assert len(repr(GradientValue(np.zeros(10**5)))) < 200 and "..." in repr(GradientValue(np.zeros(10**5)))


def test_copies_are_handles_on_the_same_values():
    g = value_of(1.0, 2.0)
    for twin in (copy.copy(g), copy.deepcopy(g), g.clone()):
        assert isinstance(twin, GradientValue) and twin is not g
        assert np.shares_memory(twin.numpy(), g.numpy())


def test_pickle_belongs_to_no_runtime():
    alive = Alive()
    g = GradientValue(np.asfortranarray(np.arange(6.0).reshape(2, 3)), alive)
    twin = pickle.loads(pickle.dumps(g))
    assert twin.tolist() == g.tolist() and twin.numpy().flags.f_contiguous
    alive = g._alive
    alive.closed = True
    assert twin.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    with pytest.raises(RuntimeStateError):
        pickle.dumps(g)


def test_snapshots_outlive_their_handles():
    g = value_of(1.0, 2.0)
    reads = [g.numpy(), g.as_slice(float), np.asarray(g.tensor_read())]
    del g
    gc.collect()
    assert all(read.tolist() == [1.0, 2.0] for read in reads)


def test_no_attribute_can_be_added():
    with pytest.raises(AttributeError):
        value_of(1.0).extra = 1


# -------------------------------------------------------------- closed runtime

READS = {
    "value": lambda g: g.value(),
    "tensor_read": lambda g: g.tensor_read(),
    "as_slice": lambda g: g.as_slice(float),
    "to_tensor": lambda g: g.to_tensor(),
    "numpy": lambda g: g.numpy(),
    "asarray": np.asarray,
    "array": np.array,
    "item": lambda g: g.item(),
    "tolist": lambda g: g.tolist(),
    "getitem": lambda g: g[0],
    "iter": list,
    "bool": bool,
    "float": float,
    "complex": complex,
    "neg": lambda g: -g,
    "abs": abs,
    "add": lambda g: g + 1,
    "radd": lambda g: 1 + g,
    "array first": lambda g: np.ones(1) + g,
    "scalar first": lambda g: np.float64(1) * g,
    "both": lambda g: g * g,
    "matmul": lambda g: g @ np.ones(1),
    "equal": lambda g: g == 1,
    "ufunc": np.exp,
    "function": np.sum,
    "into a list": lambda g: np.array([g, g]),
    "clone": lambda g: g.clone().numpy(),
    "copy": lambda g: copy.copy(g) + 1,
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_after_close(read):
    alive = Alive()
    g = value_of(1.0, alive=alive)
    if read is not float and read is not complex:
        read(g)
    alive.closed = True
    with pytest.raises(RuntimeStateError) as caught:
        read(g)
    error = caught.value
    assert isinstance(error, RuntimeError)
    assert (
        "closed runtime" in error.given and "open runtime" in error.expected and "to_tensor()" in str(error)
    )


def test_what_still_works_after_close():
    alive = Alive()
    g = value_of(1.0, 2.0, alive=alive)
    kept, read = g.to_tensor(), g.numpy()
    alive.closed = True
    assert repr(g) == "GradientValue(closed, shape=(2,), dtype=float64)"
    assert g.shape == (2,) and g.dtype == np.float64 and len(g) == 2
    assert kept.numpy().tolist() == read.tolist() == [1.0, 2.0]


def test_a_guard_of_a_runtime_that_closes():
    alive = Alive()
    with value_of(1.0, alive=alive).value() as guard:
        alive.closed = True
        for use in (guard.as_array, lambda: guard.as_slice(float), lambda: guard.shape, lambda: guard.dtype):
            with pytest.raises(RuntimeStateError, match="closed runtime"):
                use()
    guard = ValueGuard(np.ones(1), alive)
    with pytest.raises(RuntimeStateError, match="closed runtime"), guard:
        pass


# ------------------------------------------------------------------- ValueGuard


def test_guard():
    a = np.arange(6.0).reshape(2, 3)
    with GradientValue(a).value() as guard:
        assert isinstance(guard, ValueGuard)
        assert guard.dtype == np.float64 and guard.shape == (2, 3)
        assert guard.as_array().tolist() == a.tolist()
        assert guard.as_slice(float).tolist() == list(range(6))
        assert repr(guard) == "ValueGuard(shape=(2, 3), dtype=float64)"
        kept = guard.as_array()
    assert kept.tolist() == a.tolist() and cannot_be_written(kept)


USES = {
    "as_array": lambda v: v.as_array(),
    "as_slice": lambda v: v.as_slice(float),
    "shape": lambda v: v.shape,
    "dtype": lambda v: v.dtype,
    "enter": lambda v: v.__enter__(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_after_the_block_any_use_is_an_error(use):
    with value_of(1.0).value() as guard:
        use(guard)
    with pytest.raises(RuntimeStateError) as caught:
        use(guard)
    error = caught.value
    assert isinstance(error, RuntimeError) and "released" in error.given and "with block" in error.expected
    assert "value()" in str(error) and "to_tensor()" in str(error)
    assert repr(guard) == "ValueGuard(released)"


def test_the_block_releases_when_it_raises():
    with pytest.raises(ZeroDivisionError), value_of(1.0).value() as guard:
        1 / 0  # noqa: B018
    with pytest.raises(RuntimeStateError):
        guard.as_array()


def test_a_guard_is_no_copy_and_cannot_travel():
    guard = value_of(1.0).value()
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="to_tensor"):
            duplicate(guard)


def test_examples():
    assert doctest.testmod(gradient, optionflags=FLAGS).failed == 0
