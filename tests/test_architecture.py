"""The layers of docs/architecture.md, and what the source tree must and must not hold."""

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "tenferro"
DOC = ROOT / "docs" / "architecture.md"
CODE = {".py", ".pyx", ".pxd", ".pyi"}
TEXT = CODE | {".md", ".toml", ".yml", ".yaml", ".json", ".in", ".cfg", ".txt", ".dat", ".sh"}
MAX_LINES = 500

if not (PACKAGE / "_kernels" / "product.pyx").exists():
    pytest.skip("these tests read the source tree, and this is an installed package", allow_module_level=True)


def layers():
    """Module -> height, from the block in docs/architecture.md; higher may import lower."""
    block = re.search(r"^## Layers$.*?^```text\n(.*?)^```$", DOC.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    rows = [line.partition("|")[0].split() for line in block.group(1).splitlines()]
    return {module: -depth for depth, row in enumerate(rows) for module in row}


def files(*suffixes):
    return [p for p in sorted(PACKAGE.rglob("*")) if p.suffix in suffixes and "__pycache__" not in p.parts]


def top(path):
    """The layer's module that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].partition(".")[0]


def absolute(path, level, module):
    """The dotted name that a relative import means."""
    if not level:
        return module
    package = path.relative_to(ROOT).parts[:-level]
    return ".".join([*package, module] if module else package)


def imports_of(path):
    """Each (line, dotted module, name or None) that a file imports or cimports, at any depth."""
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name, None) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                module = absolute(path, node.level, node.module or "")
                yield from ((node.lineno, module, alias.name) for alias in node.names)
        return
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if match := re.match(r"\s*from\s+(\.*)([\w.]*)\s+c?import\s+(.+)", line):
            module = absolute(path, len(match[1]), match[2])
            names = [part.strip(" ()").partition(" ")[0] for part in match[3].split(",")]
            yield from ((number, module, name) for name in names)
        elif match := re.match(r"\s*c?import\s+(.+)", line):
            yield from ((number, name.split()[0], None) for name in match[1].split(","))


def targets(path):
    """Each (line, layer's module, whole dotted name) of this package that a file imports."""
    modules = {top(p) for p in files(".py", ".pyx")}
    for line, module, name in imports_of(path):
        parts = module.split(".")
        if parts[0] != "tenferro":
            continue
        if len(parts) > 1:
            yield line, parts[1], module
        elif name in modules:
            yield line, name, f"{module}.{name}"
        else:
            yield line, "__init__", module


def test_every_module_has_a_layer():
    assert {top(p) for p in files(".py", ".pyx")} == set(layers())


def test_imports_go_down():
    height = layers()
    seen = 0
    wrong = []
    for path in files(".py", ".pyx", ".pxd"):
        for line, target, _ in targets(path):
            seen += 1
            if target != top(path) and height[target] >= height[top(path)]:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {target}")
    assert not wrong
    assert seen > 100  # the search itself works


def test_kernels_are_imported_through_their_package():
    """A .pxd needs the module's own name for a cimport; nothing else may know it."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {module}"
        for path in files(".py", ".pyx")
        for line, target, module in targets(path)
        if target == "_kernels" and top(path) != "_kernels" and module != "tenferro._kernels"
    ]
    assert not wrong


def test_the_search_sees_an_import_that_goes_up(tmp_path, monkeypatch):
    package = tmp_path / "tenferro"
    package.mkdir()
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    monkeypatch.setitem(globals(), "PACKAGE", package)
    (package / "eager.py").write_text("")
    (package / "tape.py").write_text("import numpy\n\ndef f():\n    from . import eager\n")
    (package / "tape.pxd").write_text("from tenferro.eager cimport EagerTensor\ncimport cython\n")
    assert [(path.name, *found) for path in files(".py", ".pxd") for found in targets(path)] == [
        ("tape.pxd", 1, "eager", "tenferro.eager"),
        ("tape.py", 4, "eager", "tenferro.eager"),
    ]


def test_only_numpy_and_the_standard_library_are_imported():
    """SciPy and matplotlib only inside a function, where the extra is asked for."""
    allowed = {*sys.stdlib_module_names, "numpy", "tenferro"}
    for path in files(".py"):
        tree = ast.parse(path.read_text("utf-8"))
        deferred = {
            node.lineno
            for function in ast.walk(tree)
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
            for node in ast.walk(function)
            if isinstance(node, (ast.Import, ast.ImportFrom))
        }
        for line, module, _ in imports_of(path):
            where = f"{path.relative_to(ROOT)}:{line}"
            extras = {"scipy", "matplotlib"} if line in deferred else set()
            assert module.partition(".")[0] in allowed | extras, f"{where} imports {module}"


def sources():
    """The text files that belong to the project."""
    found = [p for p in ROOT.iterdir() if p.is_file()]
    for folder in ("tenferro", "tests", "docs", "examples", "benchmarks", ".ci", ".github"):
        found += [p for p in (ROOT / folder).rglob("*") if p.is_file()]
    made = {"__pycache__", "results", "html", "env"}
    return [
        p
        for p in found
        if (p.suffix in TEXT or p.name in {"run", "LICENSE"}) and not made & set(p.relative_to(ROOT).parts)
    ]


def test_files_are_short():
    long = {}
    for path in sources():
        if path.suffix in CODE:
            lines = len(path.read_text("utf-8").splitlines())
            if lines > MAX_LINES:
                long[str(path.relative_to(ROOT))] = lines
    assert not long, f"files are at most {MAX_LINES} lines; split these: {long}"


def test_no_machine_paths():
    """Nothing names a place on one machine."""
    # in pieces, so that this file does not name one either
    roots = "|".join(["wor" + "k", "ho" + "me", "ro" + "ot", "Us" + "ers", "op" + "t", "tm" + "p"])
    places = re.compile(rf"(?<![\w.])/(?:{roots})/[\w.]+|[A-Z]:\\+Us" + "ers")
    wrong = []
    for path in sources():
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if places.search(line):
                wrong.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}")
    assert not wrong


def test_what_is_typed_can_be_compiled():
    """setup.py compiles the Python modules that have a .pxd beside them."""
    for path in PACKAGE.glob("*.pxd"):
        assert path.with_suffix(".py").exists(), path.name
