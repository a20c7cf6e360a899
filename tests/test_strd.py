"""The job on NIST's nonlinear regression problems: files, models, solver, command."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tenferro
from tenferro import jacobian
from tenferro.__main__ import main
from tenferro.strd import (
    MODELS,
    NAMES,
    StrdInputError,
    cli,
    digits,
    levenberg_marquardt,
    load,
    run,
    standard_deviations,
)
from tenferro.strd.fit import _damping
from tenferro.strd.problems import DATA, parse

EXAMPLE = Path(__file__).parents[1] / "examples" / "strd.py"
# A program must get the tenferro that is tested, whichever is installed.
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(tenferro.__file__).parents[1])}


def text_of(name):
    return (DATA / f"{name}.dat").read_text()


def complex_step(model, b):
    """The derivative by a complex step: no subtraction, so exact to rounding, and nothing of tenferro's."""
    columns = []
    for i in range(b.size):
        shifted = b.astype(np.complex128)
        step = 1e-40 * max(abs(b[i]), 1e-10)
        shifted[i] += 1j * step
        columns.append(model(shifted).imag / step)
    return np.stack(columns, axis=1)


# --- Data files and models ----------------------------------------------------------------------------------


def test_there_are_27_problems_with_a_file_each():
    assert len(NAMES) == 27
    assert sorted(path.stem for path in DATA.glob("*.dat")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_parser_agrees_with_the_header(name):
    text = text_of(name)
    problem = load(name)
    n = int(re.search(r"(\d+) Observations", text)[1])
    p = int(re.search(r"(\d+) Parameters", text)[1])
    predictors = int(re.search(r"(\d+) Predictor", text)[1])
    freedom = int(re.search(r"Degrees of Freedom: +(\d+)", text)[1])
    assert problem.y.shape == (n,)
    assert problem.x.shape == ((n,) if predictors == 1 else (predictors, n))
    assert problem.starts.shape == (2, p)
    assert problem.certified.shape == problem.certified_deviations.shape == (p,)
    # NIST's file of Rat43 states 9, but its residual standard deviation is that of 15 - 4.
    assert freedom == (9 if name == "Rat43" else n - p)
    assert problem.difficulty.capitalize() + " Level" in text
    lines = text.rstrip().splitlines()
    for position, line in ((0, lines[60]), (-1, lines[-1])):
        y, *x = map(float, line.split())
        assert problem.y[position] == (np.log(y) if name == "Nelson" else y)
        assert np.atleast_2d(problem.x)[:, position].tolist() == x


@pytest.mark.parametrize("name", NAMES)
def test_model_at_certified_parameters_gives_certified_sum_of_squares(name):
    problem = load(name)
    rss = np.sum((problem.predict(problem.certified) - problem.y) ** 2)
    if name == "Lanczos1":  # 1.4e-25: eleven digits of the parameters cannot give it
        assert rss < 1e-19
    else:
        np.testing.assert_allclose(rss, problem.certified_rss, rtol=1e-9)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("name", NAMES)
def test_jacobian_of_the_model_against_a_complex_step(name, mode):
    problem = load(name)
    for b in (*problem.starts, problem.certified):
        expected = complex_step(problem.predict, b)
        found = jacobian(problem.predict, mode=mode)(b)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: "", "which has no 'Dataset Name'; expected the header"),
        (lambda text: text[:900], "which has no 'Number of Observations'; expected the header"),
        (
            lambda text: text[: text.rindex("\n", 0, -1)],
            "13 lines of data from line 61 on; expected the 14 obs",
        ),
        (lambda text: text + "  1.0  2.0\n", "15 lines of data from line 61 on; expected the 14 obs"),
        (lambda text: text.rstrip()[: -len("760.0E0")], "line 74 has 1 values; expected 2"),
        (lambda text: text.replace("760.0E0", "76O.0E0"), "line 74 is '81.78E0 76O.0E0'; expected finite"),
        (lambda text: text.replace("760.0E0", "nan"), "line 74 is '81.78E0 nan'; expected finite numbers"),
        (lambda text: text.replace("  500  ", "  5OO  "), "parameter b1 is '5OO 250 "),
        (lambda text: text.replace("2.7070075241E+00", ""), "parameter b1 has 3 values; expected 4"),
        (lambda text: text.replace("b2 =", "b3 ="), "no parameter b2;"),
        (lambda text: text.replace("Misra1a", "Misra1b"), "which states problem Misra1b; expected Misra1a"),
    ],
)
def test_a_spoilt_file_is_refused_by_name_and_place(spoil, message):
    spoilt = spoil(text_of("Misra1a"))
    assert spoilt != text_of("Misra1a")
    with pytest.raises(StrdInputError, match=message) as caught:
        parse(spoilt, "Misra1a", "here.dat")
    assert str(caught.value).startswith("given here.dat, ") and "\n" not in str(caught.value)
    assert str(caught.value).endswith("replace it by NIST's Misra1a.dat, complete and unchanged")


def test_a_response_without_a_logarithm_is_refused():
    with pytest.raises(StrdInputError, match="smallest response is -15; expected positive"):
        parse(
            text_of("Nelson").replace("      15.00E0         1E0", "     -15.00E0         1E0", 1), "Nelson"
        )


# --- Solver -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "certified", "expected"),
    [
        ([1.0], [1.0], 11.0),
        ([1.0, 2.002], [1.0, 2.0], 3.0),
        ([-1e-9 * (1 + 1e-5)], [-1e-9], 5.0),
        ([5.0], [1.0], 0.0),
        ([np.nan, 1.0], [1.0, 1.0], 0.0),
        ([np.inf], [1.0], 0.0),
    ],
)
def test_digits(found, certified, expected):
    assert digits(found, certified) == pytest.approx(expected, abs=1e-6)


def test_a_linear_problem_is_solved_as_by_lstsq():
    rng = np.random.default_rng(1)
    a, y = rng.normal(size=(20, 4)), rng.normal(size=20)
    start = np.full(4, 10.0)
    fit = levenberg_marquardt(lambda b: a @ b, lambda b: a, y, start)
    assert fit.converged and fit.iterations < 10
    np.testing.assert_allclose(fit.parameters, np.linalg.lstsq(a, y)[0], rtol=1e-12)
    np.testing.assert_array_equal(fit.residuals, a @ fit.parameters - y)
    assert start.tolist() == [10.0] * 4


def test_rosenbrock_in_residual_form():
    fit = levenberg_marquardt(
        lambda b: np.array([10 * (b[1] - b[0] ** 2), 1 - b[0]]),
        lambda b: np.array([[-20 * b[0], 10.0], [-1.0, 0.0]]),
        np.zeros(2),
        np.array([-1.2, 1.0]),
    )
    assert fit.converged and fit.parameters.tolist() == pytest.approx([1.0, 1.0], abs=1e-14)


def test_a_parameter_without_effect_stays_where_it_is():
    x = np.linspace(0, 1, 9)
    fit = levenberg_marquardt(
        lambda b: b[0] * x, lambda b: np.stack([x, 0 * x], axis=1), 3 * x, np.array([1.0, 7.0])
    )
    assert fit.converged and fit.parameters.tolist() == pytest.approx([3.0, 7.0], rel=1e-14)


def test_a_flat_model_is_left_alone():
    fit = levenberg_marquardt(lambda b: np.ones(3), lambda b: np.zeros((3, 1)), np.zeros(3), np.array([2.0]))
    assert fit.converged and fit.parameters.tolist() == [2.0] and fit.residuals.tolist() == [1.0, 1.0, 1.0]


def test_steps_out_of_the_domain_are_shortened_without_a_warning():
    # The undamped step from 4 goes to 4 - 4 * log(4 / 0.01) < 0, where the logarithm is nan.
    fit = levenberg_marquardt(lambda b: np.log(b), lambda b: 1 / b[:, None], np.log([0.01]), np.array([4.0]))
    assert fit.converged and fit.parameters[0] == pytest.approx(0.01, rel=1e-13)


def test_a_jacobian_that_is_not_finite_rejects_the_step():
    def derivative(b):
        return np.array([[1.0 if b[0] > 0.5 else np.nan]])

    fit = levenberg_marquardt(lambda b: b, derivative, np.array([0.0]), np.array([1.0]))
    assert 0.5 < fit.parameters[0] < 0.500001 and np.all(np.isfinite(fit.jacobian))


def test_solver_says_when_it_has_not_converged():
    problem = load("MGH10")
    fit = levenberg_marquardt(
        problem.predict,
        lambda b: complex_step(problem.predict, b),
        problem.y,
        problem.starts[0],
        max_evaluations=20,
    )
    assert not fit.converged and fit.evaluations == 20 and "20 evaluations" in fit.message
    bad = levenberg_marquardt(lambda b: b / 0, lambda b: np.ones((1, 1)), np.zeros(1), np.ones(1))
    assert not bad.converged and bad.iterations == 1 and bad.parameters.tolist() == [1.0]


@pytest.mark.parametrize("radius", [1e-8, 1e-3, 0.5, 2.0, 1e3])
def test_damping_gives_the_length_that_was_asked_for(radius):
    s, g = np.array([1.7, 0.3, 1e-7]), np.array([1.0, -2.0, 1e-4])
    damping = _damping(s, g, radius)
    length = np.linalg.norm(s * g / (s * s + damping))
    assert length == pytest.approx(radius, rel=0.1) or (damping == 0 and length <= radius)
    assert _damping(s, g, 1e6) == 0


def test_standard_deviations_by_the_covariance():
    rng = np.random.default_rng(2)
    a, r = rng.normal(size=(30, 3)) * [1.0, 1e-6, 1e6], rng.normal(size=30)
    scaled = a / [1.0, 1e-6, 1e6]
    expected = np.sqrt(np.diag(np.linalg.inv(scaled.T @ scaled)) * (r @ r) / 27) / [1.0, 1e-6, 1e6]
    np.testing.assert_allclose(standard_deviations(r, a), expected, rtol=1e-12)
    assert np.isnan(standard_deviations(r, np.stack([a[:, 0], 0 * r], axis=1))).all()


# --- The job ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def results():
    return {(result.problem.name, result.start): result for result in run().results}


@pytest.mark.parametrize("start", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_every_problem_from_both_starts(results, name, start):
    result = results[name, start]
    assert result.converged and result.reached and result.parameter_digits >= 9
    # Lanczos1's residuals are 1e-13: float64 evaluates the model no better than that to a few digits.
    assert result.deviation_digits >= (2 if name == "Lanczos1" else 9)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_either_mode_of_the_jacobian_will_do(mode):
    assert run(["Rat43", "MGH09", "Nelson"], starts=[2], mode=mode).passed


def test_scipy_solver_from_start_2():
    pytest.importorskip("scipy")
    report = run(starts=[2], solver="scipy")
    assert report.solver == "scipy" and report.count(2) == (27, 27) and report.passed


def test_run_reports_as_it_goes_and_counts():
    began, ended = [], []
    report = run(
        ["rat42", "BoxBOD", "Rat42"],
        on_start=lambda problem, start, number, total: began.append((problem.name, start, number, total)),
        on_result=lambda result: ended.append((result.problem.name, result.start)),
    )
    assert began == [("Rat42", 1, 1, 4), ("Rat42", 2, 2, 4), ("BoxBOD", 1, 3, 4), ("BoxBOD", 2, 4, 4)]
    assert ended == [entry[:2] for entry in began] == [(r.problem.name, r.start) for r in report.results]
    assert report.starts == [1, 2] and report.count(1) == report.count(2) == (2, 2) and report.passed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"problems": "BoxBOD"}, r"problems='BoxBOD'; expected a list of names; pass \['BoxBOD'\]"),
        ({"problems": []}, r"problems=\[\]; expected at least one name"),
        (
            {"problems": ["Bennet"]},
            "unknown problem 'Bennet'; expected one of NIST's 27 names; did you mean Bennett5",
        ),
        ({"problems": ["###"]}, "unknown problem '###'; .*; choose from Misra1a, "),
        ({"starts": []}, r"starts=\[\]; expected 1, 2 or both"),
        ({"starts": [0]}, r"starts=\[0\]; expected 1, 2 or both"),
        ({"solver": "newton"}, "solver='newton'; expected 'lm' or 'scipy'"),
    ],
)
def test_run_refuses_bad_arguments(arguments, message):
    with pytest.raises(StrdInputError, match=message):
        run(**arguments)


# --- The command --------------------------------------------------------------------------------------------


def moved(name, directory):
    """Write the problem's file with certified values that are wrong in the fourth digit."""
    text = text_of(name)
    for value in map("{:.10E}".format, load(name).certified):
        assert value in text
        text = text.replace(value, f"{float(value) * 1.001:.10E}")
    (directory / f"{name}.dat").write_text(text)


def test_command_prints_a_row_for_each_fit(capsys):
    assert main(["strd", "--problem", "boxbod", "--problem", "Rat42"]) == 0
    out, err = capsys.readouterr()
    rows = [line.split() for line in out.splitlines()]
    assert rows[0] == "problem difficulty start iterations digits b digits sd time".split()
    fits = [("BoxBOD", "1"), ("BoxBOD", "2"), ("Rat42", "1"), ("Rat42", "2")]
    assert [row[:3] for row in rows[1:5]] == [[name, "higher", start] for name, start in fits]
    assert out.splitlines()[-2:] == ["start 1: 2 of 2 reach 6 digits", "start 2: 2 of 2 reach 6 digits"]
    assert err == ""


def test_json_is_all_that_standard_output_gets(capsys):
    assert main(["strd", "--problem", "Misra1a", "--json"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert document["tenferro"] == tenferro.__version__
    assert (document["solver"], document["threshold"], document["passed"]) == ("lm", 6.0, True)
    assert document["reached"] == document["total"] == {"1": 1, "2": 1}
    kinds = {
        "problem": str,
        "difficulty": str,
        "start": int,
        "iterations": int,
        "evaluations": int,
        "converged": bool,
        "message": str,
        "parameter_digits": float,
        "deviation_digits": float,
        "reached": bool,
        "parameters": list,
        "deviations": list,
        "rss": float,
        "seconds": float,
    }
    for result in document["results"]:
        assert {key: type(value) for key, value in result.items()} == kinds
        assert len(result["parameters"]) == len(result["deviations"]) == MODELS["Misra1a"].parameters
    assert "start 2: 1 of 1 reach 6 digits" in err


def test_json_has_null_for_what_is_not_finite():
    result = run(["BoxBOD"], starts=[2]).results[0]
    result.deviations[0] = np.inf
    assert result.as_dict()["deviations"][0] is None
    json.dumps(result.as_dict(), allow_nan=False)


def test_status_is_1_where_a_fit_misses_and_certified_values_do_not_steer_it(tmp_path, capsys):
    moved("BoxBOD", tmp_path)
    assert main(["strd", "--problem", "BoxBOD", "--data", str(tmp_path), "--json"]) == 1
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert document["passed"] is False and document["reached"] == {"1": 0, "2": 0}
    assert "start 2: 0 of 1 reach 6 digits; not: BoxBOD" in err and "below 6 digits" in err
    right = run(["BoxBOD"]).results
    assert [result["parameters"] for result in document["results"]] == [r.parameters.tolist() for r in right]
    assert main(["strd", "--problem", "BoxBOD", "--data", str(tmp_path), "--start", "1"]) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--problem", "MGH71"],
            "unknown problem 'MGH71'; expected one of NIST's 27 names; did you mean MGH17",
        ),
        (
            ["--data", "nowhere"],
            "nowhere/Misra1a.dat, which cannot be read (No such file or directory)",
        ),
        (
            ["--data", "{tmp}", "--problem", "BoxBOD"],
            "which has 5 lines of data from line 61 on; expected the 6",
        ),
        (
            ["--data", "{tmp}", "--problem", "Rat42"],
            "line 69 is '67.080E0 seventy'; expected finite numbers",
        ),
        (["--data", "{tmp}", "--problem", "Rat43"], "which has no 'Dataset Name'; expected"),
        (["--data", "{tmp}", "--problem", "ENSO"], "Is a directory"),
        (["--data", "a\0b"], "given 'a\\x00b/Misra1a.dat', which cannot be read"),
        (["--plot", "{tmp}/fits.docx"], "expected a name that ends in .png, .svg or .pdf"),
        (["--plot", "{tmp}/fits"], "expected a name that ends in .png, .svg or .pdf"),
        (
            ["--plot", "{tmp}/nowhere/fits.png"],
            "cannot be written (No such file or directory); expected a place",
        ),
        (["--plot", "{tmp}/directory.png"], "which is not a regular file; expected"),
        (["--solver", "newton"], "argument --solver: invalid choice: 'newton'"),
        (["--start", "3"], "argument --start: invalid choice: 3"),
        (["--start", "two"], "argument --start: invalid int value: 'two'"),
        (["--problems", "BoxBOD"], "unrecognized arguments: --problems BoxBOD"),
        (["--problem"], "argument --problem: expected one argument"),
    ],
)
def test_bad_input_is_one_line_and_status_2(arguments, message, tmp_path, capsys):
    if "--plot" in arguments:
        pytest.importorskip("matplotlib")
    (tmp_path / "BoxBOD.dat").write_text(text_of("BoxBOD").rstrip().rsplit("\n", 1)[0])
    (tmp_path / "Rat42.dat").write_text(text_of("Rat42").replace("79.000E0", "seventy"))
    (tmp_path / "Rat43.dat").write_bytes(bytes(range(256)))
    (tmp_path / "ENSO.dat").mkdir()
    (tmp_path / "directory.png").mkdir()
    before = sorted(tmp_path.iterdir())
    assert main(["strd", *(argument.format(tmp=tmp_path) for argument in arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and message in err
    assert err.count("\n") == 1 and err.startswith("python -m tenferro") and ": error: " in err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("module", "arguments", "message"),
    [
        ("matplotlib.figure", ["--plot", "fits.png"], "pip install 'tenferro[plot]'"),
        ("scipy.optimize", ["--solver", "scipy"], "pip install 'tenferro[scipy]'"),
    ],
)
def test_a_missing_library_is_named_with_its_remedy(module, arguments, message, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["strd", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and message in err and err.count("\n") == 1


@pytest.mark.parametrize(("ending", "magic"), [("png", b"\x89PNG\r\n\x1a\n"), ("SVG", b"<?xml")])
def test_plot_draws_a_panel_for_each_problem(ending, magic, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    path = tmp_path / f"fits.{ending}"
    path.write_bytes(b"what was there before")
    assert main(["strd", "--problem", "Nelson", "--problem", "BoxBOD", "--plot", str(path)]) == 0
    assert path.read_bytes().startswith(magic) and path.stat().st_size > 5000
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_run_that_fails_leaves_the_plot_file_alone(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "fits.png"
    path.write_bytes(b"what was there before")
    assert main(["strd", "--problem", "nothing", "--plot", str(path)]) == 2
    assert path.read_bytes() == b"what was there before"


def test_without_a_command_it_prints_help(capsys):
    assert main([]) == 0
    out, err = capsys.readouterr()
    assert "strd" in out and "27 NIST StRD" in out and err == ""


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"tenferro {tenferro.__version__}\n"


def test_unknown_command_is_one_line(capsys):
    assert main(["fit"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "'fit'" in err


def test_interrupt_is_quiet_and_130(monkeypatch, capsys):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "run", interrupted)
    assert main(["strd"]) == 130
    assert capsys.readouterr() == ("", "")


def test_progress_is_live_on_a_terminal_and_cleared(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["strd", "--problem", "BoxBOD", "--start", "2"]) == 0
    shown = "[1/1] BoxBOD, start 2"
    assert capsys.readouterr().err == f"{shown}\r{' ' * len(shown)}\r"


@pytest.mark.parametrize("program", [["-m", "tenferro", "strd"], [str(EXAMPLE)]], ids=["module", "example"])
def test_as_a_program(program):
    command = [sys.executable, *program, "--problem", "BoxBOD"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "start 2: 1 of 1 reach 6 digits" in done.stdout


def test_a_closed_pipe_is_quiet():
    command = [sys.executable, "-m", "tenferro", "strd", "--problem", "BoxBOD"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=pipe, stderr=pipe, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=60) == 141
