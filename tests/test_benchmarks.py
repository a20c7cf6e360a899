"""The benchmarks run: each once, at its smallest, and what they say of themselves is true."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "benchmarks"
if not FOLDER.is_dir():
    pytest.skip("the tests run without the repository's benchmarks", allow_module_level=True)


def load_package():
    """benchmarks, from this repository and whatever the path holds."""
    spec = importlib.util.spec_from_file_location(
        "benchmarks", FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)]
    )
    sys.modules["benchmarks"] = package = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    return package


package = load_package()
MODULES = [
    importlib.import_module(f"benchmarks.{found.name}") for found in pkgutil.iter_modules([str(FOLDER)])
]
compare, load, pairs, report, workloads = (
    importlib.import_module(f"benchmarks.{name}")
    for name in ("compare", "load", "pairs", "report", "workloads")
)
BENCHMARK = re.compile("time_|timeraw_|track_|mem_|peakmem_")  # by its name alone, as asv has it


def benchmarks():
    """(class, method) as asv discovers them, and functions that it would take for benchmarks."""
    for module in MODULES:
        for name, item in vars(module).items():
            if inspect.isclass(item):
                for method, _ in inspect.getmembers(item, inspect.isfunction):
                    if BENCHMARK.match(method):
                        short = module.__name__.partition(".")[2]
                        yield pytest.param(item, method, id=f"{short}.{name}.{method}")
            elif inspect.isfunction(item):
                assert not BENCHMARK.match(name), f"asv would take {module.__name__}.{name} for a benchmark"


@pytest.mark.parametrize(("kind", "method"), list(benchmarks()))
def test_each_runs_at_its_smallest(kind, method):
    bench = kind()
    params = [values[0] for values in getattr(kind, "params", ())]
    assert len(params) == len(getattr(kind, "param_names", ()))
    if hasattr(kind, "effort"):
        bench.effort = pairs.QUICK
    if hasattr(kind, "setup"):
        bench.setup(*params)
    if hasattr(kind, "calls"):
        bench.calls = 1
    result = getattr(bench, method)(*params)
    if hasattr(kind, "teardown"):
        bench.teardown(*params)
    if method.startswith("track_"):
        assert np.isfinite(result)
        assert kind.unit
    else:
        assert result is None


def test_there_are_benchmarks_of_every_area():
    areas = {param.id.partition(".")[0] for param in benchmarks()}
    assert areas == {
        "kernels",
        "record",
        "backward",
        "transforms",
        "package",
        "memory",
        "load",
        "strong_zero",
    }


def test_growth_sees_a_leak():
    class Leak(load.Growth):
        def one(self):
            self.kept.append(np.ones(512))

    leak = Leak()
    leak.kept = []
    # freed memory that the process still holds is used first
    assert leak.growth(10_000) > 10_000 * 4 / 2


def test_the_size_is_that_of_what_is_installed():
    installed = importlib.import_module("benchmarks.package").installed()
    suffixes = {path.suffix for path in installed.values()}
    assert {".py", ".pxd"} <= suffixes
    assert suffixes & {".so", ".pyd"}
    assert not suffixes & {".c", ".pyx", ".pyc"}


def test_asv_finds_what_its_configuration_names():
    config = json.loads((FOLDER / "asv.conf.json").read_text())
    assert (FOLDER / config["repo"] / "pyproject.toml").is_file()
    assert (FOLDER / config["benchmark_dir"] / "kernels.py").is_file()
    ignored = (FOLDER / ".gitignore").read_text().split()
    assert {config[key] + "/" for key in ("env_dir", "results_dir", "html_dir")} <= set(ignored)


# ------------------------------------------------------------------- compare.py


def test_pairs_alternate():
    called = []
    effort = pairs.Effort(warm_up=0.0, sample=0.0, total=0.0, pairs=3)
    found = pairs.alternate(lambda: called.append("a"), lambda: called.append("b"), effort)
    assert "".join(called) == "ab" + "ababab"
    assert len(found) == 3


def test_the_ratio_is_taken_pair_by_pair():
    # a machine that slows down to a third in the middle of the run
    found = pairs.ratios([(1.0, 2.0), (1.0, 2.0), (3.0, 6.0), (3.0, 6.0), (3.0, 6.0)])
    assert found == {"q1": 2.0, "median": 2.0, "q3": 2.0}


FAST = [
    name
    for name in workloads.CASES
    if re.search(r"n=(2|10|100|1000|1001)\b|tiny|broadcast|einsum|K=25", name)
]


@pytest.mark.parametrize("name", FAST)
def test_the_workloads_gradients_are_right(name):
    case = workloads.CASES[name]
    params, consts = case.inputs()
    try:
        got = compare.PEERS["tenferro"].open()(case, params, consts)()
    except NotImplementedError as error:
        pytest.skip(f"no rule yet: {error.op}")
    assert case.check(got, case.baseline(*params, *consts)) < (1e-10 if case.dtype == "float64" else 2e-4)


@pytest.mark.parametrize("name", [name for name in FAST if name in compare.VARIANTS])
def test_the_variants_by_hand_are_right(name):
    case = workloads.CASES[name]
    params, consts = case.inputs()
    for label, peer in compare.VARIANTS[name].items():
        if label.startswith("numpy"):
            case.check(peer.open()(case, params, consts)(), case.baseline(*params, *consts))


def wrong_loss(loss, grads):
    return loss * (1 + 1e-8), grads


def wrong_entry(loss, grads):
    grads[0][1] *= 1 + 1e-8
    return loss, grads


def wrong_dtype(loss, grads):
    return loss, [grads[0].astype("float32")]


def wrong_shape(loss, grads):
    return loss, [grads[0][None]]


def one_too_few(loss, grads):
    return loss, []


@pytest.mark.parametrize("spoil", [wrong_loss, wrong_entry, wrong_dtype, wrong_shape, one_too_few])
def test_a_wrong_gradient_is_not_timed(spoil):
    case = workloads.CASES["W1 seed n=100"]
    params, consts = case.inputs()
    want = case.baseline(*params, *consts)
    case.check(case.baseline(*params, *consts), want)
    with pytest.raises(AssertionError):
        case.check(spoil(*case.baseline(*params, *consts)), want)


def run_compare(*args):
    return subprocess.run(
        [sys.executable, str(FOLDER / "compare.py"), *args],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_compare_runs_and_reports(tmp_path):
    out = tmp_path / "run.json"
    done = run_compare("--quick", "--peers", "numpy,tenferro", "--out", str(out), "--report")
    assert done.returncode == 0, done.stderr
    written = json.loads(out.read_text())
    assert list(written["pairs"]) == ["W1 seed n=2"]
    for label in ("numpy", "tenferro"):
        assert written["pairs"]["W1 seed n=2"][label]["ratio"]["median"] > 0
    assert "times NumPy" in done.stdout
    assert "| W1 seed n=2 |" in done.stdout
    assert "says nothing of speed" in done.stdout

    again = run_compare("--report", str(out))
    assert again.returncode == 0, again.stderr
    assert again.stdout in done.stdout


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--only", "W99"], "no workload starts with 'W99'"),
        (["--peers", "nobody"], "no peer is called 'nobody'"),
        (["--report", "missing.json"], "--report takes files that --out has written"),
    ],
)
def test_compare_says_what_is_wrong(args, said):
    with pytest.raises(SystemExit, match=re.escape(said)):
        compare.main(args)


def test_a_missing_peer_is_skipped_with_a_note(monkeypatch, capsys):
    monkeypatch.setitem(
        compare.PEERS, "autograd", compare.PEERS["autograd"]._replace(module="nowhere_installed")
    )
    options = compare.arguments().parse_args(["--peers", "numpy,autograd"])
    assert compare.chosen_peers(options) == ["numpy"]
    assert "nowhere_installed is not installed: skipped" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("found", "shown", "status"),
    [
        ({"failed": "Traceback\nValueError: no"}, "FAILED: ValueError: no", 1),
        ({"na": "no rule: numpy.einsum"}, "n/a (no rule: numpy.einsum)", 0),
    ],
)
def test_a_failed_pair_is_an_exit_status_and_a_missing_rule_is_not(monkeypatch, capsys, found, shown, status):
    monkeypatch.setattr(compare, "in_process", lambda *args, **kwargs: found)
    assert compare.main(["--only", "W11", "--peers", "tenferro"]) == status
    assert shown in capsys.readouterr().out


def test_a_missing_rule_is_named():
    # a function without a rule, whatever rules there will be
    broken = workloads.replace(workloads.CASES["W1 seed n=2"], forward=lambda F, x: np.packbits(x))
    workloads.CASES["no rule"] = broken
    try:
        assert compare.measure("no rule", "tenferro", True, False) == {"na": "no rule: numpy.packbits"}
    finally:
        del workloads.CASES["no rule"]


def test_goals_and_noise_are_reported():
    def pair(ratio):
        same = {"q1": ratio, "median": ratio, "q3": ratio}
        return {"ratio": same, "time": same, "numpy": {"q1": 1, "median": 1, "q3": 1}, "others": 0.0}

    runs = [
        {"pairs": {"W1 seed n=2": {"tenferro": pair(r)}, "W2 chain n=10": {"tenferro": pair(2 * r)}}}
        for r in (0.5, 0.6, 0.9)
    ]
    assert list(report.goals(runs)) == [
        ("W1 seed n=2", "0.7", "0.60", "yes"),
        ("W2 chain n=10", "1.0", "1.20", "no"),
    ]
    assert report.cell(runs, "W1 seed n=2", "tenferro").endswith("~")
    assert "runs apart 80.0%" in report.noise(runs)
