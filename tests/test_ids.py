"""ids.py: ids are unique, opaque and carry their process."""

import copy
import doctest
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tenferro import ids
from tenferro.errors import InvalidArgumentError
from tenferro.ids import TensorId, id_of, new_tensor_id


def test_ids_differ_and_hash():
    made = [new_tensor_id() for _ in range(1000)]
    assert len(set(made)) == 1000 and all(i == i for i in made)
    assert made[0] != made[1] and made[0] != 1 and made[0] != made[0]._key


def test_an_id_does_not_change():
    i = new_tensor_id()
    for name in ("_key", "number"):
        with pytest.raises(AttributeError, match="does not change"):
            setattr(i, name, 1)
        with pytest.raises(AttributeError, match="does not change"):
            delattr(i, name)


def test_copies_and_pickles_are_equal():
    i = new_tensor_id()
    assert copy.copy(i) is i and copy.deepcopy(i) is i
    for protocol in range(2, 6):
        twin = pickle.loads(pickle.dumps(i, protocol))
        assert twin == i and hash(twin) == hash(i) and not twin != i
    assert repr(i).startswith("TensorId(")


def test_threads_share_one_sequence():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(lambda _: [new_tensor_id() for _ in range(500)], range(8)))
    finally:
        sys.setswitchinterval(interval)
    assert len({i for some in made for i in some}) == 4000


CHILD = """
import os, pickle, sys
from tenferro.ids import new_tensor_id
new_tensor_id()
read, write = os.pipe()
pid = os.fork()
mine = {new_tensor_id() for _ in range(20)}
if pid == 0:
    os.write(write, pickle.dumps(mine))
    os._exit(0)
os.waitpid(pid, 0)
theirs = pickle.loads(os.read(read, 1 << 16))
sys.exit(0 if len(mine | theirs) == 40 else 1)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_mints_its_own():
    # in an interpreter of its own, as forking is not safe among other tests' threads
    assert subprocess.run([sys.executable, "-c", CHILD], env=environment()).returncode == 0


def test_another_process_mints_its_own():
    code = (
        "import pickle, sys; from tenferro.ids import new_tensor_id; "
        "sys.stdout.buffer.write(pickle.dumps(new_tensor_id()))"
    )
    dumps = [
        subprocess.run(
            [sys.executable, "-c", code], env=environment(), capture_output=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert len({pickle.loads(d) for d in dumps} | {new_tensor_id()}) == 3


def environment():
    """The environment in which a child finds the package where this process did."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


class Leaf:
    """What a store sees of a tensor."""

    dtype, shape = np.dtype(float), ()

    def __init__(self, id):
        self.id = id


class Named:
    """A user's own id that happens to have an `id` attribute."""

    id = 5


def test_id_of():
    i, named = new_tensor_id(), Named()
    for key in (i, "w", 3, ("layer", 1), None, named, frozenset(), float("inf"), np.int64(3), Leaf):
        assert id_of(key) is key
    assert id_of(Leaf(i)) is i and id_of(Leaf("w")) == "w"


@pytest.mark.parametrize("key", [[], {}, set(), np.zeros(2), ("w", []), bytearray(b"w")])
def test_what_is_not_hashable_is_no_id(key):
    with pytest.raises(InvalidArgumentError) as caught:
        id_of(key)
    error = caught.value
    assert isinstance(error, ValueError) and type(key).__name__ in error.given
    assert "id" in error.expected and "EagerTensor" in error.remedy


def test_examples():
    assert isinstance(new_tensor_id(), TensorId)
    assert doctest.testmod(ids).failed == 0
