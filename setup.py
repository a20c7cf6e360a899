"""Build the extension modules; everything else is declared in pyproject.toml.

TENFERRO_PURE=1   leave the tape and the tensors interpreted (the kernels are still compiled)
TENFERRO_DEBUG=1  compile with bounds and initialised checks, and without optimisation
"""

import os
import sys

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup

PURE = os.environ.get("TENFERRO_PURE", "0") not in ("", "0")
DEBUG = os.environ.get("TENFERRO_DEBUG", "0") not in ("", "0")

KERNELS = ["product", "loops", "layout", "reduce", "accumulate", "fingerprint", "read"]
COMPILED_PYTHON = [] if PURE else ["primitive", "tape", "passes", "recording", "eager", "trace"]

if sys.platform == "win32":
    compile_args = ["/Od"] if DEBUG else ["/O2"]
else:
    # -fno-trapping-math lets the strong-zero selects become vector code; it changes no value
    compile_args = ["-O1", "-g"] if DEBUG else ["-O3", "-fno-trapping-math"]


def extension(name, source):
    return Extension(
        f"tenferro.{name}",
        [f"tenferro/{source}"],
        include_dirs=[np.get_include()],
        define_macros=[
            ("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
            ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION"),
        ],
        extra_compile_args=compile_args,
    )


kernels = [extension(f"_kernels.{name}", f"_kernels/{name}.pyx") for name in KERNELS]
# these are Python modules that also run interpreted: they keep Python's own semantics
modules = [extension(name, f"{name}.py") for name in COMPILED_PYTHON]
common = {"language_level": 3, "embedsignature": True, "show_performance_hints": True}

setup(
    ext_modules=cythonize(
        kernels,
        compiler_directives={
            **common,
            "boundscheck": DEBUG,
            "wraparound": False,
            "initializedcheck": DEBUG,
            "cdivision": True,
        },
    )
    + cythonize(modules, compiler_directives={**common, "annotation_typing": False})
)
