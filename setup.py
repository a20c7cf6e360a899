"""Build the extension modules; everything else is declared in pyproject.toml.

TENFERRO_PURE=1   leave the tape and the tensors interpreted (the kernels are still compiled)
TENFERRO_DEBUG=1  compile with bounds and initialised checks, and without optimisation
"""

import os
import sys
import sysconfig
from pathlib import Path

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext as _build_ext

PURE = os.environ.get("TENFERRO_PURE", "0") not in ("", "0")
DEBUG = os.environ.get("TENFERRO_DEBUG", "0") not in ("", "0")

KERNELS = sorted(path.stem for path in Path("tenferro/_kernels").glob("*.pyx"))
# a Python module with a .pxd beside it is compiled in Cython's pure-Python mode
COMPILED_PYTHON = [] if PURE else sorted(path.stem for path in Path("tenferro").glob("*.pxd"))
# what one kind of build leaves behind is of no use to another
BUILD_DIR = "build/" + ("pure" if PURE else "compiled") + ("-debug" if DEBUG else "")

if sys.platform == "win32":
    compile_args = ["/Od"] if DEBUG else ["/O2"]
else:
    # -fno-trapping-math lets the strong-zero selects become vector code; it changes no value
    compile_args = ["-O1", "-g"] if DEBUG else ["-O3", "-g0", "-fno-trapping-math"]


class build_ext(_build_ext):
    """Compile, and where that is done in place remove the modules of an earlier, different build."""

    def run(self):
        super().run()
        if self.inplace:
            wanted = {Path(self.get_ext_filename(extension.name)) for extension in self.extensions}
            for path in Path("tenferro").rglob("*" + sysconfig.get_config_var("EXT_SUFFIX")):
                if path not in wanted:
                    path.unlink()


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


def cythonized(extensions, **directives):
    return cythonize(
        extensions,
        build_dir=BUILD_DIR + "/cython",
        compiler_directives={
            "language_level": 3,
            "embedsignature": True,
            "show_performance_hints": True,
            **directives,
        },
    )


kernels = [extension(f"_kernels.{name}", f"_kernels/{name}.pyx") for name in KERNELS]
modules = [extension(name, f"{name}.py") for name in COMPILED_PYTHON]

setup(
    ext_modules=cythonized(
        kernels, boundscheck=DEBUG, wraparound=False, initializedcheck=DEBUG, cdivision=True
    )
    # these are Python modules that also run interpreted: they keep Python's own semantics
    + cythonized(modules, annotation_typing=False),
    cmdclass={"build_ext": build_ext},
    options={"build": {"build_base": BUILD_DIR}, "build_ext": {"parallel": os.cpu_count()}},
)
