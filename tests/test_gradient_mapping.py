"""gradient.py: Gradients, the result of a pass."""

import copy
import gc
import pickle
import sys
import threading

import numpy as np
import pytest

from tenferro.errors import InvalidArgumentError, RuntimeStateError
from tenferro.gradient import Gradients, GradientValue
from tenferro.ids import new_tensor_id


class Leaf:
    """What a mapping sees of a tensor."""

    dtype, shape = np.dtype(float), ()

    def __init__(self):
        self.id = new_tensor_id()


def value_of(*data):
    return GradientValue(np.array(data, float))


def test_mapping():
    x, y, other = Leaf(), Leaf(), Leaf()
    gx, gy = value_of(1.0, 2.0), value_of(3.0)
    gradients = Gradients({x.id: gx, "w": gy})
    assert len(gradients) == 2 and not gradients.is_empty() and gradients
    assert gradients[x] is gradients[x.id] is gradients.get(x) is gradients.grad(x) is gx
    assert gradients["w"] is gy and gradients.grad("w") is gy
    assert x in gradients and x.id in gradients and "w" in gradients and y not in gradients
    assert list(gradients) == list(gradients.keys()) == [x.id, "w"]
    assert [id(g) for g in gradients.values()] == [id(g) for _, g in gradients.items()] == [id(gx), id(gy)]
    assert gradients.get(other) is None and gradients.grad(other) is None and gradients.get(other, 5) == 5
    with pytest.raises(KeyError, match=r"no gradient for .*grad\(tensor\)"):
        gradients[other]
    assert np.array_equal(gradients[x], [1.0, 2.0])
    assert "GradientValue" in repr(gradients)


def test_empty_mapping():
    gradients = Gradients({})
    assert gradients.is_empty() and len(gradients) == 0 and not gradients and list(gradients) == []


def test_it_is_read_only():
    gradients = Gradients({"w": value_of(1.0)})
    with pytest.raises(TypeError):
        gradients["w"] = value_of(2.0)
    with pytest.raises(TypeError):
        del gradients["w"]
    assert not hasattr(gradients, "update") and not hasattr(gradients, "pop")


@pytest.mark.parametrize("method", ["get", "grad", "take_grad", "__getitem__", "__contains__"])
def test_a_key_that_is_not_hashable(method):
    with pytest.raises(InvalidArgumentError) as caught:
        getattr(Gradients({}), method)([1.0])
    assert "list" in caught.value.given and "EagerTensor" in str(caught.value)


def test_a_gradient_is_no_key():
    g = value_of(1.0)
    with pytest.raises(InvalidArgumentError, match="GradientValue"):
        Gradients({"w": g}).get(g)


def test_take_grad_moves_out():
    x = Leaf()
    g = value_of(1.0)
    gradients = Gradients({x.id: g, "w": value_of(2.0)})
    assert gradients.take_grad(x) is g and gradients.take_grad(x) is None
    assert x not in gradients and len(gradients) == 1 and gradients.take_grad("w").tolist() == [2.0]
    assert gradients.is_empty() and gradients.take_grad("never") is None
    assert g.tolist() == [1.0]


BORROWS = {"value": lambda g: g.value(), "clone": lambda g: g.clone().value(),
           "copy": lambda g: copy.copy(copy.copy(g)).value()}  # fmt: skip


@pytest.mark.parametrize("borrow", BORROWS.values(), ids=BORROWS)
def test_take_grad_of_what_is_borrowed(borrow):
    gradients = Gradients({"w": value_of(1.0)})
    with borrow(gradients["w"]) as guard, pytest.raises(RuntimeStateError) as caught:
        gradients.take_grad("w")
    error = caught.value
    assert isinstance(error, RuntimeError) and error.op == "take_grad" and "'w'" in error.given
    assert "nobody borrows" in error.expected and "with block" in str(error)
    assert "w" in gradients and repr(guard) == "ValueGuard(released)"
    assert gradients.take_grad("w").tolist() == [1.0]


def test_two_guards_and_a_dropped_one():
    gradients = Gradients({"w": value_of(1.0)})
    with gradients["w"].value():
        with gradients["w"].value():
            pass
        with pytest.raises(RuntimeStateError):
            gradients.take_grad("w")
    open_guard = gradients["w"].value()
    with pytest.raises(RuntimeStateError):
        gradients.take_grad("w")
    del open_guard
    gc.collect()
    assert gradients.take_grad("w") is not None


def test_an_array_read_from_a_guard_is_no_loan():
    gradients = Gradients({"w": value_of(1.0)})
    with gradients["w"].value() as guard:
        array = guard.as_array()
    assert gradients.take_grad("w") is not None and array.tolist() == [1.0]


def test_mapping_travels():
    x = Leaf()
    gradients = pickle.loads(pickle.dumps(Gradients({x.id: value_of(1.0, 2.0)})))
    assert gradients[x].tolist() == [1.0, 2.0]
    for twin in (copy.copy(gradients), copy.deepcopy(gradients)):
        assert twin.take_grad(x).tolist() == [1.0, 2.0] and x in gradients


def test_equality_is_identity():
    a, b = Gradients({"w": value_of(1.0, 2.0)}), Gradients({"w": value_of(1.0, 2.0)})
    assert a == a and a != b and len({a, b}) == 2


def test_iteration_while_gradients_are_taken():
    gradients = Gradients({n: value_of(float(n)) for n in range(5)})
    assert [gradients.take_grad(n).item() for n in gradients] == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_each_gradient_is_taken_once_by_many_threads():
    gradients, taken = Gradients({n: value_of(float(n)) for n in range(200)}), []
    start = threading.Barrier(8)

    def work():
        start.wait()
        for n in range(200):
            g = gradients.get(n)
            if g is not None:
                with g.clone().value() as guard:
                    assert guard.as_array()[0] == n
            try:
                g = gradients.take_grad(n)
            except RuntimeStateError:
                continue
            if g is not None:
                taken.append(g.item())

    threads = [threading.Thread(target=work) for _ in range(8)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert len(taken) == len(set(taken))
    assert sorted(taken) == sorted(set(range(200)) - set(gradients))
