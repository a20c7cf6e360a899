"""No operation without a row in `specs`."""

import numpy as np
import pytest
from specs import SPECS

from tenferro.primitive import functions


def without_a_row():
    rows = {spec.name for spec in SPECS}
    return {f.__name__ for f in functions if f.__name__ not in rows}


def test_every_operation_has_a_row():
    assert without_a_row() == set()


def test_an_operation_without_a_row_is_found(monkeypatch):
    monkeypatch.setitem(functions, np.hypot, None)
    assert without_a_row() == {"hypot"}


def test_every_row_has_calls_and_differs():
    names = [spec.name for spec in SPECS]
    assert len(set(names)) == len(names)
    assert all(len(spec.calls) >= 2 for spec in SPECS)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_every_row_names_numpy(spec):
    assert spec.name == "getitem" or callable(getattr(np, spec.name))
