"""The package: how long it takes to import, how large it is."""

from __future__ import annotations

import importlib.metadata
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import tenferro

from .pairs import Effort, alternate, quartiles

PACKAGE = Path(tenferro.__file__).parent
NOT_INSTALLED = {".c", ".pyx", ".pyc"}  # though they lie in the folder of an in-place build


def import_in_new_process(statement: str) -> None:
    """Run an import where nothing is imported yet, the same tenferro being found."""
    code = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); {statement}"
    subprocess.run([sys.executable, "-c", code], check=True)


def installed() -> dict[str, Path]:
    """The installed files by name: the distribution's, or the folder's where it is built in place."""
    found: dict[str, Path] = {}
    try:
        distribution = importlib.metadata.distribution("tenferro")
    except importlib.metadata.PackageNotFoundError:
        pass
    else:
        if distribution.read_text("RECORD"):  # the metadata of a source folder lists sources instead
            listed = distribution.files or []
            found = {str(f): Path(str(f.locate())) for f in listed if f.suffix != ".pyc"}
    if not any(path.is_relative_to(PACKAGE) for path in found.values()):
        found = {
            str(path.relative_to(PACKAGE.parent)): path
            for path in PACKAGE.rglob("*")
            if path.is_file() and path.suffix not in NOT_INSTALLED
        }
    return {name: path for name, path in found.items() if path.is_file()}


class ImportTime:
    unit = "ms"
    effort = Effort(warm_up=0.0, sample=0.0, total=0.0, pairs=9)

    def track_beyond_numpy(self):
        """What ``import tenferro`` takes more than ``import numpy``, the two alternating."""
        pairs = alternate(
            lambda: import_in_new_process("import numpy"),
            lambda: import_in_new_process("import tenferro"),
            self.effort,
        )
        return quartiles([1000 * (ours - numpys) for numpys, ours in pairs])["median"]


class Size:
    unit = "bytes"

    def track_installed(self):
        """At most 6 MB."""
        return sum(path.stat().st_size for path in installed().values())

    def track_wheel(self):
        """The same files in a compressed archive, which is what a wheel is."""
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as wheel:
            for name, path in installed().items():
                wheel.write(path, name)
        return len(archive.getvalue())
