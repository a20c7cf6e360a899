"""TensorRead: a read-only target over an array that does not fix the dtype."""

from cpython.buffer cimport PyBUF_WRITABLE, PyObject_GetBuffer

import numpy as np

from ..errors import RuntimeStateError


cdef class TensorRead:
    """Read access to an array without a copy: buffer protocol, ``__array__`` and DLPack.

    Parameters
    ----------
    array : numpy.ndarray
        Of any shape; it is kept alive and never written through this object.
    alive : object, optional
        Something with an attribute ``closed``; once that is true every access is refused.

    Raises
    ------
    TypeError
        ``array`` is no NumPy array.

    Examples
    --------
    >>> import numpy as np
    >>> from tenferro import TensorRead
    >>> memoryview(TensorRead(np.array([2.0, 3.0]))).readonly
    True
    """

    cdef object __weakref__
    cdef object _array
    cdef object _alive

    def __cinit__(self, array, alive=None):
        if not isinstance(array, np.ndarray):
            raise TypeError(f"TensorRead takes a numpy.ndarray, not a {type(array).__name__}; use numpy.asarray first")
        # a view of our own: flags that the caller sets later on its array are not ours
        view = np.asarray(array).view()
        view.flags.writeable = False
        self._array = view
        self._alive = alive

    cdef object open(self):
        if self._alive is not None and self._alive.closed:
            raise RuntimeStateError(
                given="a value of a closed runtime", expected="an open runtime",
                remedy="read values, or copy them with to_tensor(), before close()",
            )
        return self._array

    @property
    def shape(self):
        """The length of each axis."""
        return self._array.shape

    @property
    def dtype(self):
        """The dtype of the elements."""
        return self._array.dtype

    def __repr__(self):
        return f"TensorRead(shape={self._array.shape}, dtype={self._array.dtype})"

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        array = self.open()
        if flags & PyBUF_WRITABLE:
            raise BufferError("a TensorRead gives read-only buffers; copy with to_tensor() to write")
        PyObject_GetBuffer(array, buffer, flags)

    def view(self):
        """The values as a read-only array without a copy, whose flag cannot be set to writeable.

        Returns
        -------
        numpy.ndarray
        """
        array = self.open()
        try:
            # its base is a memoryview and no array, so NumPy finds nothing writeable behind it
            return np.asarray(memoryview(array))
        except (ValueError, BufferError):
            # a dtype that the buffer protocol has no format for
            copy = array.copy()
            copy.flags.writeable = False
            return copy.view()

    def __array__(self, dtype=None, copy=None):
        array = self.open()
        if copy or (dtype is not None and np.dtype(dtype) != array.dtype):
            if copy is False:
                raise ValueError(f"a {array.dtype} TensorRead cannot become {np.dtype(dtype)} without a copy")
            return array.astype(array.dtype if dtype is None else dtype, copy=True)
        return self.view()

    def __dlpack__(self, **kwargs):
        return self.open().__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.open().__dlpack_device__()
