"""What the documentation says is run: docstring examples, code blocks, names, commands."""

import ast
import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

import tenferro
from tenferro import _kernels

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(tenferro.__file__).parent
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
MODULES = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
)
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def examples_of(module):
    """The docstring examples of a module, read from its source, whether or not it is compiled."""
    parser = doctest.DocTestParser()
    path = PACKAGE.parent.joinpath(*module.__name__.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, kinds) and (text := ast.get_docstring(node)):
            name = f"{module.__name__}.{getattr(node, 'name', '__doc__')}"
            line = node.body[0].lineno
            if (test := parser.get_doctest(text, dict(vars(module)), name, str(path), line)).examples:
                yield test


def kernel_examples():
    """Those of the compiled kernels, which have no Python source."""
    parser = doctest.DocTestParser()
    for name in _kernels.__all__:
        thing = getattr(_kernels, name)
        cls = thing if inspect.isclass(thing) else type(thing)
        for label, member in [(name, cls), *((f"{name}.{key}", value) for key, value in vars(cls).items())]:
            text = inspect.getdoc(member) if not label.endswith("__") else None
            if text and (test := parser.get_doctest(text, {}, f"_kernels.{label}", None, 0)).examples:
                yield test


def run(test):
    output = []
    results = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=output.append)
    assert results.failed == 0, "".join(output)
    return results.attempted


def test_modules_are_found():
    assert {"tenferro", "tenferro.eager", "tenferro.ops.elementwise", "tenferro.numpy"} <= set(MODULES)


@pytest.mark.parametrize("name", [m for m in MODULES if not m.endswith("__main__")])
def test_docstring_examples_of(name):
    for test in examples_of(importlib.import_module(name)):
        run(test)


def test_docstring_examples_of_kernels():
    for test in kernel_examples():
        run(test)


@pytest.mark.parametrize(
    "name", ["tenferro.transforms", "tenferro.eager", "tenferro.runtime", "tenferro.errors"]
)
def test_examples_are_found_compiled_or_not(name):
    assert sum(len(test.examples) for test in examples_of(importlib.import_module(name))) >= 3


def test_a_wrong_example_fails():
    test = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    with pytest.raises(AssertionError, match="Expected"):
        run(test)


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_python_blocks_run(page, capsys):
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), {"__name__": "__main__"})


def test_readme_example_is_short_and_prints_what_it_should(capsys):
    (block,) = blocks(ROOT / "README.md", "python")
    body = [line for line in block.splitlines() if line.strip() and "import" not in line]
    assert len(body) <= 10
    exec(block, {"__name__": "__main__"})
    assert "[4., 6.]" in capsys.readouterr().out


def test_readme_starts_with_the_two_commands():
    """.ci/run takes the second command from here, so that what CI runs is what the README says."""
    first_screen = "\n".join((ROOT / "README.md").read_text("utf-8").splitlines()[:24])
    setup = "python3 -m venv .venv && .venv/bin/python -m pip install -e"
    assert re.findall(r"^```sh\n(.*)\n```$", first_screen, re.MULTILINE) == [
        f"{setup} . && .venv/bin/python -m tenferro strd",
        f"{setup} '.[test]' && .venv/bin/python -m pytest",
    ]


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\(([^)#\s]+)\)", text):
            if not re.match(r"https?:", target):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def rust_names():
    rows = re.findall(
        r"^\| `([^`]+)` \| `([^`]+)` \|", (ROOT / "docs" / "rust_names.md").read_text("utf-8"), re.MULTILINE
    )
    return dict(rows), len(rows)


def resolve(name):
    """Import a dotted name: the longest module in it, then attributes."""
    parts = name.split(".")
    thing = importlib.import_module(parts[0])
    for k, part in enumerate(parts[1:], 1):
        try:
            thing = getattr(thing, part)
        except AttributeError:
            thing = importlib.import_module(".".join(parts[: k + 1]))
    return thing


def test_rust_names_lead_to_python_names():
    table, rows = rust_names()
    assert len(table) == rows > 100  # and no Rust name twice
    for python in table.values():
        assert resolve(python) is not None, python


def test_rust_names_cover_the_store_and_the_gradients():
    """Each method of the two classes that the Rust systems define in full has a Rust name."""
    table, _ = rust_names()
    named = set(table.values())
    ours = {
        "items",
        "values",
        "merge",
        "ndim",
        "size",
        "numpy",
        "item",
        "tolist",
        "get",
    }  # Python's, or ours alone
    for cls in (tenferro.GradStore, tenferro.GradientValue, tenferro.ValueGuard, tenferro.Gradients):
        for member in vars(cls):
            if not member.startswith("_") and member not in ours:
                assert f"tenferro.{cls.__name__}.{member}" in named, f"{cls.__name__}.{member}"


def test_rust_example_runs_as_it_is_written():
    import numpy as np

    tn = tenferro
    rt = tn.EagerRuntime.with_cpu_backend(tn.CpuBackend())
    x = tn.EagerTensor.requires_grad_in(tn.Tensor.from_vec_col_major([2], [2.0, 3.0]), rt)
    loss = x.mul(x).reduce_sum([0])
    gradients = loss.backward()
    gradient = x.grad
    assert gradient.shape == (2,)
    assert gradient.dtype == np.float64
    assert gradient.as_slice(np.float64).tolist() == [4.0, 6.0]
    assert len(gradients) == 1
    assert np.array_equal(gradients[x], [4.0, 6.0])
