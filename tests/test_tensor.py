"""tensor.py: making, reading and writing host arrays."""

import copy
import doctest
import importlib
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from tenferro.errors import (
    DTypeMismatchError,
    HostAccessError,
    InvalidArgumentError,
    RankMismatchError,
    ShapeDataLengthMismatchError,
    UnsupportedDTypeError,
)
from tenferro.tensor import Tensor, TensorRead

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
SWAPPED = np.dtype("f8").newbyteorder("S")
SHAPES = [(), (1,), (0,), (3,), (2, 3), (0, 2), (2, 0, 3), (2, 1, 3), (2, 3, 4)]


def cannot_be_written(array):
    """Whether neither writing nor setting the flag is possible, for the array, its views and their bases."""
    for view in (array, array[...], array.T, array.view(np.ndarray)):
        assert not view.flags.writeable
        with pytest.raises(ValueError):
            view.flags.writeable = True
        with pytest.raises(ValueError):
            view[...] = 0
    base = array.base
    while isinstance(base, np.ndarray):
        assert not base.flags.writeable
        with pytest.raises(ValueError):
            base.flags.writeable = True
        base = base.base
    return True


# ------------------------------------------------------------------ making


@pytest.mark.parametrize("shape", SHAPES)
def test_from_vec(shape):
    n = int(np.prod(shape))
    data = [float(i) for i in range(n)]
    for make, order in ((Tensor.from_vec_col_major, "F"), (Tensor.from_vec_row_major, "C")):
        t = make(list(shape), data)
        assert t.shape == shape and t.ndim == len(shape) and t.size == n and t.dtype == np.float64
        np.testing.assert_array_equal(t.numpy(), np.reshape(data, shape, order=order))
        assert t.as_slice(float).tolist() == data


def test_rank_0_holds_one_element():
    t = Tensor.from_vec_col_major([], [5.0])
    assert t.shape == () and t.size == 1 and t.numpy() == 5.0 and t.as_slice("f8").tolist() == [5.0]
    assert Tensor.from_vec_col_major([], np.ones(1), dtype="c8").dtype == np.complex64


def test_the_shape_may_be_an_int_or_an_array():
    for shape in (2, np.int32(2), np.array(2), (2,), np.array([2]), range(2, 3), iter([2])):
        assert Tensor.from_vec_row_major(shape, [1.0, 2.0]).shape == (2,)


def test_data_may_be_any_flat_sequence():
    for data in ((1.0, 2.0), np.array([1.0, 2.0]), iter([1.0, 2.0]), (float(i) for i in (1, 2)),
                 Tensor.from_vec_row_major([2], [1.0, 2.0]), np.array([1.0, 9.0, 2.0])[::2],
                 np.array([1.0, 2.0], SWAPPED)):  # fmt: skip
        t = Tensor.from_vec_row_major([2], data)
        assert t.as_slice(float).tolist() == [1.0, 2.0]


def test_data_is_copied():
    data = np.array([1.0, 2.0])
    for make in (Tensor.from_vec_row_major, Tensor.from_vec_col_major, lambda s, d: Tensor.from_numpy(d)):
        t = make([2], data)
        data[0] = 9.0
        assert t.numpy()[0] == 1.0
        data[0] = 1.0


def test_dtype_of_the_data_and_given():
    assert Tensor.from_vec_row_major([2], [1, 2]).dtype == np.dtype(int)
    assert Tensor.from_vec_row_major([2], [True, False]).dtype == np.dtype(bool)
    assert Tensor.from_vec_row_major([0], []).dtype == np.float64
    assert Tensor.from_vec_row_major([0], [], dtype=int).dtype == np.dtype(int)
    assert Tensor.from_vec_row_major([2], [1, 2], dtype="f4").dtype == np.float32
    assert Tensor.from_vec_row_major([2], np.array([1.0, 2.0]), dtype="f4").dtype == np.float32
    assert Tensor.from_vec_row_major([2], [1, 2], dtype=np.uint8).dtype == np.uint8
    assert Tensor.from_vec_row_major([2], [1, 2], dtype=SWAPPED).dtype == np.float64


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        ([1.5, 2.0], int),
        ([1j, 1.0], float),
        ([2, 1], bool),
        (np.array([1.0, 2.0]), "i4"),
        (np.array([300, 1]), np.uint8),
    ],
)
def test_a_narrower_kind_is_refused(data, dtype):
    with pytest.raises(DTypeMismatchError) as caught:
        Tensor.from_vec_row_major([2], data, dtype)
    error = caught.value
    assert isinstance(error, TypeError)
    assert (error.given, error.expected) == (np.asarray(data).dtype, np.dtype(dtype))
    assert "astype" in error.remedy


def test_integers_that_do_not_fit_are_numpys_error():
    with pytest.raises(OverflowError):
        Tensor.from_vec_row_major([1], [300], dtype=np.uint8)


@pytest.mark.parametrize("make", [Tensor.from_vec_col_major, Tensor.from_vec_row_major])
@pytest.mark.parametrize(
    ("shape", "n"), [((2, 2), 3), ((2,), 3), ((), 0), ((), 2), ((0,), 1), ((2**40, 2**40), 1)]
)
def test_length_mismatch(make, shape, n):
    with pytest.raises(ShapeDataLengthMismatchError) as caught:
        make(shape, [1.0] * n)
    error = caught.value
    assert isinstance(error, ValueError)
    assert error.shape == shape and error.given == n
    assert error.expected == (
        0 if 0 in shape else 2**80 if len(shape) == 2 and shape[0] > 2 else int(np.prod(shape))
    )
    assert "pass as many elements as the shape has" in str(error)


@pytest.mark.parametrize("shape", [[-1], [2, -3], -1, [1.5], "ab", None, [[2]], {"a": 1}, object()])
def test_bad_shape(shape):
    with pytest.raises(InvalidArgumentError) as caught:
        Tensor.from_vec_row_major(shape, [1.0])
    assert isinstance(caught.value, ValueError) and caught.value.argument == "shape"
    assert "[] for rank 0" in str(caught.value)


@pytest.mark.parametrize("data", [[[1.0], [2.0]], 3.0, np.zeros((1, 2))])
def test_data_that_is_not_flat(data):
    with pytest.raises(RankMismatchError) as caught:
        Tensor.from_vec_row_major([2], data)
    error = caught.value
    assert (error.given, error.expected, error.argument) == (np.ndim(data), 1, "data")
    assert isinstance(error, ValueError) and "from_numpy" in error.remedy


@pytest.mark.parametrize("data", [[None], ["a"], [b"a"], [object()], np.array([1], "M8[s]"),
                                  np.zeros(1, [("a", "f8")])])  # fmt: skip
@pytest.mark.parametrize("make", [lambda d: Tensor.from_vec_row_major([1], d), Tensor.from_numpy])
def test_what_is_no_number_is_refused(data, make):
    with pytest.raises(UnsupportedDTypeError) as caught:
        make(data)
    error = caught.value
    assert isinstance(error, TypeError)
    assert error.dtype == error.given == np.asarray(data).dtype and error.argument in ("data", "array")
    assert "real" in error.expected and ".astype(float)" in str(error)


def test_a_dtype_that_is_no_number_is_refused():
    with pytest.raises(UnsupportedDTypeError, match="object"):
        Tensor.from_vec_row_major([1], [1.0], dtype=object)
    with pytest.raises(TypeError, match="nonsense"):
        Tensor.from_vec_row_major([1], [1.0], dtype="nonsense")


def test_the_class_is_not_called():
    with pytest.raises(TypeError, match="from_numpy"):
        Tensor([1.0])


# -------------------------------------------------------------- from_numpy


def layouts():
    """Arrays of every layout, with the values that a tensor must have."""
    a = np.arange(24.0).reshape(2, 3, 4)
    packed = np.zeros(3, np.dtype([("c", "i1"), ("x", "f8")]))
    packed["x"] = [1.0, 2.0, 3.0]
    read = a.copy()
    read.flags.writeable = False
    return {
        "C": a, "F": np.asfortranarray(a), "permuted": a.transpose(1, 0, 2), "reversed": a[::-1, :, ::-1],
        "strided": a[:, ::2], "column": a[..., 1], "broadcast": np.broadcast_to(a[0], (5, 3, 4)),
        "unaligned": packed["x"], "foreign": a.astype(SWAPPED), "rank 0": np.array(3.0), "read-only": read,
        "empty": np.zeros((3, 0, 2)), "float32": a.astype("f4"), "complex": a + 1j * a, "bool": a > 3,
        "int": a.astype(int), "matrix": np.ones((2, 2)).view(type("Sub", (np.ndarray,), {})),
        "windows": as_strided(np.arange(5.0), (3, 3), (8, 8)),
    }  # fmt: skip


@pytest.mark.parametrize("name", layouts())
def test_from_numpy_any_layout(name):
    a = layouts()[name]
    t = Tensor.from_numpy(a)
    got = t.numpy()
    assert type(got) is np.ndarray and got.dtype == a.dtype.newbyteorder("=") and got.dtype.isnative
    np.testing.assert_array_equal(got, a)
    assert not np.shares_memory(got, a) and cannot_be_written(got)
    flat = t.as_slice(t.dtype)
    assert flat.shape == (a.size,) and flat.flags.c_contiguous and cannot_be_written(flat)
    assert a.size == 0 or np.shares_memory(flat, got)
    assert sorted(flat.tolist(), key=abs) == sorted(np.ravel(a).tolist(), key=abs)


def test_memory_order_is_kept():
    a = np.arange(24.0).reshape(2, 3, 4)
    for b in (a, np.asfortranarray(a), a.transpose(1, 0, 2)):
        for t in (Tensor.from_numpy(b), Tensor.from_numpy(b, copy=False), Tensor.from_numpy(b).duplicate()):
            assert t.numpy().strides == b.strides
            assert t.as_slice(float).tolist() == b.ravel(order="K").tolist()
    assert Tensor.from_numpy(np.asfortranarray(a)).numpy().flags.f_contiguous


def test_array_likes():
    assert Tensor.from_numpy([[1.0, 2.0]]).shape == (1, 2)
    assert Tensor.from_numpy(3.0).shape == ()
    assert Tensor.from_numpy(Tensor.from_numpy([1.0])).shape == (1,)


def test_copy_false_shares():
    a = np.arange(6.0).reshape(2, 3)
    t = Tensor.from_numpy(a, copy=False)
    assert np.shares_memory(t.numpy(), a) and cannot_be_written(t.numpy())
    a[0, 0] = 9.0
    assert t.numpy()[0, 0] == 9.0
    t[0, 1] = 8.0
    assert a[0, 1] == 8.0


def test_copy_false_shares_the_memory_but_not_the_shape():
    a = np.arange(6.0)
    t = Tensor.from_numpy(a, copy=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        a.shape = (2, 3)
    assert t.shape == (6,) and t.as_slice(float).size == 6


def test_copy_false_on_read_only_memory():
    a = np.arange(3.0)
    a.flags.writeable = False
    t = Tensor.from_numpy(a, copy=False)
    with pytest.raises(ValueError, match="read-only"):
        t[0] = 1.0
    t.duplicate()[0] = 1.0


def test_copy_false_where_a_copy_is_needed():
    with pytest.raises(InvalidArgumentError) as caught:
        Tensor.from_numpy([1.0], copy=False)
    assert isinstance(caught.value, ValueError) and "leave copy out" in caught.value.remedy
    assert caught.value.op == "from_numpy"
    with pytest.raises(UnsupportedDTypeError) as caught:
        Tensor.from_numpy(np.zeros(2, SWAPPED), copy=False)
    assert caught.value.dtype == SWAPPED and "leave copy out" in caught.value.remedy
    assert "native byte order" in caught.value.expected


def test_a_masked_array_is_refused():
    with pytest.raises(InvalidArgumentError) as caught:
        Tensor.from_numpy(np.ma.masked_array([1.0, 2.0], [True, False]))
    assert "masked" in caught.value.given and "filled" in caught.value.remedy


# ----------------------------------------------------------------- reading


@pytest.mark.parametrize("name", ["strided", "column", "broadcast", "unaligned", "windows"])
def test_as_slice_of_what_is_not_compact(name):
    a = layouts()[name]
    t = Tensor.from_numpy(a, copy=False)
    with pytest.raises(HostAccessError) as caught:
        t.as_slice(float)
    error = caught.value
    assert isinstance(error, RuntimeError) and error.shape == error.given == a.shape
    assert error.op == "as_slice" and "duplicate()" in str(error)
    assert t.duplicate().as_slice(float).size == a.size


@given(st.permutations(range(4)), st.lists(st.booleans(), min_size=4, max_size=4), st.integers(0, 3))
def test_as_slice_is_in_memory_order_whatever_the_axes(axes, flips, longest):
    shape = [2, 1, 3, 2]
    shape[longest] += 1
    a = np.arange(float(np.prod(shape))).reshape(shape).transpose(axes)
    a = a[tuple(slice(None, None, -1 if flip else 1) for flip in flips)]
    flat = Tensor.from_numpy(a, copy=False).as_slice(float)
    assert flat.tolist() == list(range(a.size)) and np.shares_memory(flat, a)


@pytest.mark.parametrize("dtype", [np.float32, int, complex, bool, object, SWAPPED])
def test_as_slice_of_another_dtype(dtype):
    t = Tensor.from_numpy([1.0])
    with pytest.raises(DTypeMismatchError) as caught:
        t.as_slice(dtype)
    error = caught.value
    assert isinstance(error, TypeError)
    assert (error.given, error.expected, error.op) == (np.dtype(dtype), np.float64, "as_slice")
    assert "ask for dtype float64" in str(error)


def test_the_dtype_may_be_named_in_any_way():
    t = Tensor.from_numpy([1.0])
    for dtype in (float, "f8", "float64", np.float64, np.dtype("f8"), np.double):
        assert t.as_slice(dtype).tolist() == [1.0]


def test_reading_outlives_the_tensor():
    t = Tensor.from_numpy([1.0, 2.0])
    whole, flat = t.numpy(), t.as_slice(float)
    del t
    assert whole.tolist() == flat.tolist() == [1.0, 2.0]


def test_numpy_functions_take_it():
    t = Tensor.from_numpy([1.0, 2.0])
    assert np.sum(t) == 3.0 and np.add(t, 1).tolist() == [2.0, 3.0]
    view = np.asarray(t)
    assert np.shares_memory(view, t.numpy()) and cannot_be_written(view)
    own = np.array(t)
    own[0] = 7.0
    assert t.numpy()[0] == 1.0
    assert np.asarray(t, dtype="f4").dtype == np.float32
    with pytest.raises(ValueError):
        np.array(t, dtype="f4", copy=False)


def test_equality_is_elementwise():
    t = Tensor.from_numpy([1.0, 2.0])
    assert (t == Tensor.from_numpy([1.0, 3.0])).tolist() == [True, False]
    assert (t != [1.0, 3.0]).tolist() == [False, True]
    assert (t == 2.0).tolist() == (np.array(2.0) == t).tolist() == [False, True]
    with pytest.raises(TypeError, match="unhashable"):
        hash(t)


def test_items_and_iteration():
    t = Tensor.from_numpy([[1.0, 2.0], [3.0, 4.0]])
    assert t[0].tolist() == [1.0, 2.0] and t[1, 1] == 4.0 and len(t) == 2
    assert cannot_be_written(t[0]) and [row.sum() for row in t] == [3.0, 7.0]
    t[0] = [8.0, 9.0]
    assert t.numpy()[0].tolist() == [8.0, 9.0]
    with pytest.raises(IndexError):
        t[2]
    with pytest.raises(TypeError):
        iter(Tensor.from_numpy(1.0))


def test_duplicate_is_independent_and_writable():
    t = Tensor.from_numpy(np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]))
    twin = t.duplicate()
    twin[0, 0] = 9.0
    assert t.numpy()[0, 0] == 1.0 and twin.numpy()[0, 0] == 9.0
    assert twin.numpy().flags.f_contiguous


def test_pickle_and_deepcopy():
    t = Tensor.from_numpy(np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]))
    for twin in (pickle.loads(pickle.dumps(t)), copy.deepcopy(t)):
        assert (twin == t).all() and twin.numpy().flags.f_contiguous
        twin[0, 0] = 9.0
        assert t.numpy()[0, 0] == 1.0


def test_repr():
    assert repr(Tensor.from_numpy([2.0, 3.0])) == "Tensor([2., 3.], shape=(2,), dtype=float64)"
    assert repr(Tensor.from_numpy(np.zeros((2, 0), "f4"))) == "Tensor([], shape=(2, 0), dtype=float32)"
    assert repr(Tensor.from_numpy(True)) == "Tensor(True, shape=(), dtype=bool)"


def test_tensor_read_is_here():
    read = TensorRead(np.arange(3.0))
    assert np.asarray(read).tolist() == [0.0, 1.0, 2.0] and cannot_be_written(read.view())


def test_examples():
    # not tenferro.tensor, which is the function of that name
    tensor = importlib.import_module("tenferro.tensor")
    assert doctest.testmod(tensor, optionflags=FLAGS).failed == 0
