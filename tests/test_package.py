"""The package as a whole: what importing it does, its version, its docstrings, its typing marker."""

import importlib
import importlib.metadata
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tenferro
from tenferro import errors

PUBLIC_MODULES = ["tenferro", "tenferro.errors", "tenferro.numpy", "tenferro.strd", "tenferro.testing"]
HOME = Path(tenferro.__file__).parents[1]


def run_python(code, **environment):
    """A fresh interpreter that imports the same tenferro as this one."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "PYTHONPATH": str(HOME), **environment},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_importing_pulls_in_nothing_but_numpy_and_the_standard_library():
    made = run_python(
        "import json, sys\n"
        "before = set(sys.modules)\n"
        "import tenferro\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in set(sys.modules) - before})))\n"
    )
    assert made.returncode == 0, made.stderr
    loaded = set(json.loads(made.stdout))
    assert {"tenferro", "numpy"} <= loaded
    # Cython registers helper modules of its own inside each extension module
    foreign = {
        name
        for name in loaded - {"tenferro", "numpy"} - set(sys.stdlib_module_names)
        if not re.fullmatch(r"cython_runtime|_cython_\w+", name)
    }
    assert not foreign


def test_importing_loads_neither_the_main_job_nor_the_heavy_parts_of_the_standard_library():
    made = run_python(
        "import sys, numpy\n"
        "before = set(sys.modules)\n"
        "import tenferro\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    assert made.returncode == 0, made.stderr
    loaded = set(made.stdout.split())
    assert "tenferro.strd" not in loaded
    assert not loaded & {"argparse", "asyncio", "json", "multiprocessing", "subprocess", "unittest"}


def test_importing_prints_nothing_and_reads_no_environment_of_its_own():
    made = run_python("import tenferro", TENFERRO_PURE="1", TENFERRO_DEBUG="1")
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")


def test_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|(a|b|rc)\d+)?", tenferro.__version__)
    try:
        installed = importlib.metadata.version("tenferro")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("tenferro is imported from the source tree without being installed")
    assert installed == tenferro.__version__


def test_changelog_has_the_version():
    changelog = Path(__file__).parents[1] / "CHANGELOG.md"
    assert re.search(rf"^## {re.escape(tenferro.__version__)}\b", changelog.read_text("utf-8"), re.MULTILINE)


def test_the_package_is_marked_as_typed():
    assert (Path(tenferro.__file__).parent / "py.typed").is_file()


def public_names(module):
    return getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]


def documented():
    """(dotted name, object) of every public object, and of the public members of public classes."""
    seen = set()
    for module_name in PUBLIC_MODULES:
        module = importlib.import_module(module_name)
        yield module_name, module
        for name in public_names(module):
            thing = getattr(module, name)
            home = getattr(thing, "__module__", None)
            if id(thing) in seen or not str(home).startswith("tenferro"):
                continue
            if not (inspect.isclass(thing) or callable(thing)):
                continue
            seen.add(id(thing))
            yield f"{module_name}.{name}", thing
            if inspect.isclass(thing):
                for member, value in vars(thing).items():
                    if not member.startswith("_") and is_api(value):
                        yield f"{module_name}.{name}.{member}", value


def is_api(value):
    return isinstance(value, (property, classmethod, staticmethod)) or inspect.isroutine(value)


def test_public_names_have_docstrings():
    found = dict(documented())
    assert len(found) > 150  # the search itself works
    assert {"tenferro.EagerTensor.backward", "tenferro.Tensor.dtype", "tenferro.grad"} <= set(found)
    missing = [name for name, thing in found.items() if not (inspect.getdoc(thing) or "").strip()]
    assert not missing


def test_docstrings_start_with_one_line():
    wrong = []
    for name, thing in documented():
        first, *rest = (inspect.getdoc(thing) or "").splitlines() or [""]
        # embedsignature puts a compiled function's signature first
        if rest and re.match(rf"{name.rpartition('.')[2]}\(.*\)", first):
            first, *rest = rest[1:] if not rest[0] else rest
        if name.startswith("tenferro.numpy."):
            continue  # NumPy's own docstrings
        if not first.strip() or (rest and rest[0].strip()):
            wrong.append(name)
    assert not wrong


def test_public_names_are_what_init_lists():
    """`from tenferro import *` and completion show public names, and no helper by accident."""
    for name in public_names(tenferro):
        thing = getattr(tenferro, name)
        assert inspect.ismodule(thing) or thing.__module__.startswith("tenferro"), name


def test_error_classes_are_public():
    classes = {
        name
        for name, thing in vars(errors).items()
        if inspect.isclass(thing) and issubclass(thing, errors.TenferroError)
    }
    assert len(classes) == 19
    assert classes <= set(vars(tenferro))
