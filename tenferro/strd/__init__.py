"""The 27 NIST StRD nonlinear regression problems, fitted with tenferro's Jacobians.

``python -m tenferro strd`` runs it; `run` is the same from Python.
"""

from tenferro.strd.fit import Fit, MissingExtraError, levenberg_marquardt, standard_deviations
from tenferro.strd.problems import MODELS, NAMES, Model, Problem, StrdInputError, load
from tenferro.strd.report import Report, Result, digits, run

__all__ = [
    "MODELS",
    "NAMES",
    "Fit",
    "MissingExtraError",
    "Model",
    "Problem",
    "Report",
    "Result",
    "StrdInputError",
    "digits",
    "levenberg_marquardt",
    "load",
    "run",
    "standard_deviations",
]
