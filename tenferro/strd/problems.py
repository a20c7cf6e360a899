"""The 27 regression problems: their models as plain NumPy functions, and the reader of NIST's files.

A model is written as in its data file, with ``b[0]`` for NIST's ``b1``. Nothing here knows of derivatives.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenferro.errors import ValidationError

__all__ = ["MODELS", "NAMES", "Model", "Problem", "StrdInputError", "load", "parse", "resolve", "shown"]

Array = NDArray[np.float64]

DATA = Path(__file__).parent / "data"


class StrdInputError(ValidationError):
    """An input of the job is unusable: an unknown name, or a file that is not one of NIST's.

    The message is a single line.

    Examples
    --------
    >>> from tenferro.strd import load
    >>> load("Rat4")
    Traceback (most recent call last):
        ...
    tenferro.strd.problems.StrdInputError: given unknown problem 'Rat4'; expected one of NIST's 27
    names; did you mean Rat43 or Rat42?
    """


def bennett5(b: Any, x: Array) -> Any:
    """Magnetization of a superconductor against log time."""
    return b[0] * (b[1] + x) ** (-1 / b[2])


def chwirut(b: Any, x: Array) -> Any:
    """Ultrasonic response against metal distance."""
    return np.exp(-b[0] * x) / (b[1] + b[2] * x)


def danwood(b: Any, x: Array) -> Any:
    """Energy radiated by a carbon filament against its temperature."""
    return b[0] * x ** b[1]


def eckerle4(b: Any, x: Array) -> Any:
    """Transmittance against wavelength: one Gaussian peak."""
    return (b[0] / b[1]) * np.exp(-0.5 * ((x - b[2]) / b[1]) ** 2)


def enso(b: Any, x: Array) -> Any:
    """Monthly pressure differences in the Pacific: a yearly cycle and two of unknown period."""
    return (
        b[0]
        + b[1] * np.cos(2 * np.pi * x / 12)
        + b[2] * np.sin(2 * np.pi * x / 12)
        + b[4] * np.cos(2 * np.pi * x / b[3])
        + b[5] * np.sin(2 * np.pi * x / b[3])
        + b[7] * np.cos(2 * np.pi * x / b[6])
        + b[8] * np.sin(2 * np.pi * x / b[6])
    )


def gauss(b: Any, x: Array) -> Any:
    """Two Gaussian peaks on a decaying exponential."""
    return (
        b[0] * np.exp(-b[1] * x)
        + b[2] * np.exp(-((x - b[3]) ** 2) / b[4] ** 2)
        + b[5] * np.exp(-((x - b[6]) ** 2) / b[7] ** 2)
    )


def cubic_over_cubic(b: Any, x: Array) -> Any:
    """A cubic over a cubic: Hahn1 (thermal expansion) and Thurber (electron mobility)."""
    return (b[0] + b[1] * x + b[2] * x**2 + b[3] * x**3) / (1 + b[4] * x + b[5] * x**2 + b[6] * x**3)


def kirby2(b: Any, x: Array) -> Any:
    """A quadratic over a quadratic: scanning electron microscope line widths."""
    return (b[0] + b[1] * x + b[2] * x**2) / (1 + b[3] * x + b[4] * x**2)


def lanczos(b: Any, x: Array) -> Any:
    """A sum of three decaying exponentials."""
    return b[0] * np.exp(-b[1] * x) + b[2] * np.exp(-b[3] * x) + b[4] * np.exp(-b[5] * x)


def mgh09(b: Any, x: Array) -> Any:
    """The rational function of Kowalik and Osborne."""
    return b[0] * (x**2 + x * b[1]) / (x**2 + x * b[2] + b[3])


def mgh10(b: Any, x: Array) -> Any:
    """The thermistor function of Meyer."""
    return b[0] * np.exp(b[1] / (x + b[2]))


def mgh17(b: Any, x: Array) -> Any:
    """Two decaying exponentials and a constant, of Osborne."""
    return b[0] + b[1] * np.exp(-x * b[3]) + b[2] * np.exp(-x * b[4])


def saturation(b: Any, x: Array) -> Any:
    """Exponential saturation: BoxBOD (oxygen demand) and Misra1a (adsorption)."""
    return b[0] * (1 - np.exp(-b[1] * x))


def misra1b(b: Any, x: Array) -> Any:
    """Monomolecular adsorption, second form."""
    return b[0] * (1 - (1 + b[1] * x / 2) ** (-2))


def misra1c(b: Any, x: Array) -> Any:
    """Monomolecular adsorption, third form."""
    return b[0] * (1 - (1 + 2 * b[1] * x) ** (-0.5))


def misra1d(b: Any, x: Array) -> Any:
    """Monomolecular adsorption, fourth form."""
    return b[0] * b[1] * x * ((1 + b[1] * x) ** (-1))


def nelson(b: Any, x: Array) -> Any:
    """Logarithm of a breakdown strength against time ``x[0]`` and temperature ``x[1]``."""
    return b[0] - b[1] * x[0] * np.exp(-b[2] * x[1])


def rat42(b: Any, x: Array) -> Any:
    """Sigmoidal growth of a pasture."""
    return b[0] / (1 + np.exp(b[1] - b[2] * x))


def rat43(b: Any, x: Array) -> Any:
    """Sigmoidal growth of onions."""
    return b[0] / ((1 + np.exp(b[1] - b[2] * x)) ** (1 / b[3]))


def roszman1(b: Any, x: Array) -> Any:
    """Quantum defects of an atom against the energy of its excited state."""
    return b[0] - b[1] * x - np.arctan(b[2] / (x - b[3])) / np.pi


class Model(NamedTuple):
    """A model and what its data file must offer it.

    Attributes
    ----------
    function : callable
        ``function(b, x)``, plain NumPy; `x` is of shape ``(n,)``, or ``(predictors, n)`` for several.
    parameters : int
        The length of `b`.
    predictors : int
        The number of columns after the response.
    log_response : bool
        Whether the model describes ``log(y)``.
    """

    function: Callable[[Any, Array], Any]
    parameters: int
    predictors: int = 1
    log_response: bool = False


# In the order of NIST's own list: by level of difficulty.
MODELS: dict[str, Model] = {
    "Misra1a": Model(saturation, 2),
    "Chwirut2": Model(chwirut, 3),
    "Chwirut1": Model(chwirut, 3),
    "Lanczos3": Model(lanczos, 6),
    "Gauss1": Model(gauss, 8),
    "Gauss2": Model(gauss, 8),
    "DanWood": Model(danwood, 2),
    "Misra1b": Model(misra1b, 2),
    "Kirby2": Model(kirby2, 5),
    "Hahn1": Model(cubic_over_cubic, 7),
    "Nelson": Model(nelson, 3, predictors=2, log_response=True),
    "MGH17": Model(mgh17, 5),
    "Lanczos1": Model(lanczos, 6),
    "Lanczos2": Model(lanczos, 6),
    "Gauss3": Model(gauss, 8),
    "Misra1c": Model(misra1c, 2),
    "Misra1d": Model(misra1d, 2),
    "Roszman1": Model(roszman1, 4),
    "ENSO": Model(enso, 9),
    "MGH09": Model(mgh09, 4),
    "Thurber": Model(cubic_over_cubic, 7),
    "BoxBOD": Model(saturation, 2),
    "Rat42": Model(rat42, 3),
    "MGH10": Model(mgh10, 3),
    "Eckerle4": Model(eckerle4, 3),
    "Rat43": Model(rat43, 4),
    "Bennett5": Model(bennett5, 3),
}

NAMES: tuple[str, ...] = tuple(MODELS)


@dataclass(frozen=True, eq=False)
class Problem:
    """One problem as its data file states it.

    Attributes
    ----------
    name : str
        NIST's name.
    difficulty : {"lower", "average", "higher"}
        NIST's level.
    model : Model
        What `x` and the parameters are put into.
    x : ndarray of float64, shape (n,) or (predictors, n)
        The predictors.
    y : ndarray of float64, shape (n,)
        What the model describes: the response, or its logarithm for Nelson.
    starts : ndarray of float64, shape (2, p)
        NIST's two starting points.
    certified, certified_deviations : ndarray of float64, shape (p,)
        The certified parameters and their standard deviations, to 11 digits. Used for reporting alone.
    certified_rss : float
        The certified residual sum of squares.
    """

    name: str
    difficulty: str
    model: Model
    x: Array
    y: Array
    starts: Array
    certified: Array
    certified_deviations: Array
    certified_rss: float

    def predict(self, b: Any) -> Any:
        """Evaluate the model at parameters `b` for every observation.

        Parameters
        ----------
        b : array_like of float, shape (p,)
            The parameters, tracked or not.

        Returns
        -------
        array, shape (n,)
            What the model predicts.

        Examples
        --------
        >>> from tenferro.strd import load
        >>> problem = load("BoxBOD")
        >>> print(problem.predict(problem.certified).round(1))
        [ 90.1 142.2 172.4 200.  209.2 212.9]
        """
        return self.model.function(b, self.x)


def resolve(name: str) -> str:
    """Find NIST's spelling of a problem's name.

    Parameters
    ----------
    name : str
        A name, in any case.

    Returns
    -------
    str
        One of `NAMES`.

    Raises
    ------
    StrdInputError
        If there is no such problem; the message names the nearest ones.

    Examples
    --------
    >>> resolve("mgh10")
    'MGH10'
    """
    by_lower = {known.lower(): known for known in NAMES}
    if name.lower() in by_lower:
        return by_lower[name.lower()]
    near = [by_lower[key] for key in get_close_matches(name.lower(), by_lower, n=4, cutoff=0.5)]
    raise StrdInputError(
        given=f"unknown problem {name!r}",
        expected="one of NIST's 27 names",
        remedy=f"did you mean {_or(near)}?" if near else f"choose from {', '.join(NAMES)}",
    )


def load(name: str, data: str | Path | None = None) -> Problem:
    """Read a problem from its data file.

    Parameters
    ----------
    name : str
        The problem's name, in any case.
    data : path, optional
        The directory that holds ``NAME.dat``; the files that come with the package by default.

    Returns
    -------
    Problem
        The data, starting points and certified values.

    Raises
    ------
    StrdInputError
        If the name is unknown, or the file is missing, truncated or not in NIST's format.

    Examples
    --------
    >>> problem = load("Misra1a")
    >>> problem.x.shape, problem.starts.tolist()
    ((14,), [[500.0, 0.0001], [250.0, 0.0005]])
    """
    name = resolve(name)
    path = (DATA if data is None else Path(data)) / f"{name}.dat"
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        reason = getattr(error, "strerror", None) or error
        raise StrdInputError(
            given=f"{shown(path)}, which cannot be read ({reason})",
            expected=f"NIST's file {name}.dat",
            remedy="name a directory that holds it",
        ) from None
    return parse(text, name, shown(path))


def parse(text: str, name: str, source: str = "a text") -> Problem:
    """Read a problem from the text of its data file.

    Every count that the header states is checked against what the file holds, so a truncated file is refused.

    Parameters
    ----------
    text : str
        The whole file.
    name : str
        One of `NAMES`: the problem that the file must state.
    source : str
        How an error names the text.

    Returns
    -------
    Problem
        The data, starting points and certified values.

    Raises
    ------
    StrdInputError
        If the text is not that problem's file, complete and numeric.
    """
    model = MODELS[name]

    def refusal(fact: str, expected: str) -> StrdInputError:
        remedy = f"replace it by NIST's {name}.dat, complete and unchanged"
        return StrdInputError(given=f"{source}, {fact}", expected=expected, remedy=remedy)

    def find(pattern: str, what: str) -> re.Match[str]:
        found = re.search(pattern, text, re.MULTILINE)
        if found is None:
            raise refusal(f"which has no {what}", "the header of a NIST file")
        return found

    def numbers(fields: list[str], where: str) -> list[float]:
        try:
            values = [float(field) for field in fields]
        except ValueError:
            values = [np.nan]
        if not np.all(np.isfinite(values)):
            raise refusal(f"whose {where} is {' '.join(fields)!r}", "finite numbers")
        return values

    stated = find(r"^Dataset Name: +(\w+)", "'Dataset Name'")[1]
    if stated != name:
        raise refusal(f"which states problem {stated}", name)
    difficulty = find(r"(Lower|Average|Higher) Level of Difficulty", "level of difficulty")[1].lower()
    first, last = map(int, find(r"^ *Data +\(lines +(\d+) to +(\d+)\)", "line range of the data").groups())
    observations = int(find(r"^Number of Observations: +(\d+)", "'Number of Observations'")[1])
    rss = numbers([find(r"^Residual Sum of Squares: +(\S+)", "residual sum of squares")[1]], "residual sum")[
        0
    ]

    rows = []
    for i in range(1, model.parameters + 1):
        fields = find(rf"^ *b{i} = +(.*)$", f"parameter b{i}")[1].split()
        if len(fields) != 4:
            raise refusal(
                f"whose parameter b{i} has {len(fields)} values",
                "4: two starts, the certified value and its standard deviation",
            )
        rows.append(numbers(fields, f"parameter b{i}"))
    parameters = np.array(rows)

    lines = [line.split() for line in text.split("\n")][first - 1 :]
    while lines and not lines[-1]:
        lines.pop()
    if not len(lines) == observations == last - first + 1:
        raise refusal(
            f"which has {len(lines)} lines of data from line {first} on",
            f"the {observations} observations on lines {first} to {last} that its header states",
        )
    table = []
    for number, fields in enumerate(lines, start=first):
        if len(fields) != 1 + model.predictors:
            raise refusal(f"whose line {number} has {len(fields)} values", f"{1 + model.predictors}")
        table.append(numbers(fields, f"line {number}"))
    columns = np.array(table).T.copy()
    y = columns[0]
    if model.log_response:
        if y.min() <= 0:
            raise refusal(f"whose smallest response is {y.min():g}", "positive ones, to take logarithms of")
        y = np.log(y)
    return Problem(
        name=name,
        difficulty=difficulty,
        model=model,
        x=columns[1] if model.predictors == 1 else columns[1:],
        y=y,
        starts=parameters[:, :2].T.copy(),
        certified=parameters[:, 2].copy(),
        certified_deviations=parameters[:, 3].copy(),
        certified_rss=rss,
    )


def shown(path: Path) -> str:
    """Return a path as it goes into a one-line message.

    Parameters
    ----------
    path : Path
        Any path.

    Returns
    -------
    str
        The path, in quotes and escaped only if it would not print.
    """
    text = str(path)
    return text if text.isprintable() else repr(text)


def _or(names: list[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
