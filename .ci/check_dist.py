"""Check what an sdist and a wheel hold: python .ci/check_dist.py FOLDER."""

import sys
import tarfile
import zipfile
from pathlib import Path

MAX_INSTALLED = 6e6


def main(folder: Path) -> None:
    """Exit with a message for the first thing that is missing or too much."""
    (sdist,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    with tarfile.open(sdist) as archive:
        held = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    with zipfile.ZipFile(wheel) as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
    source = {path.as_posix() for path in Path("tenferro").rglob("*") if path.is_file()}

    code = ending(source, ".py", ".pxd", ".pyi", ".dat", "py.typed")
    pages = {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"}
    nothing("the sdist lacks", (code | ending(source, ".pyx") | pages | {"setup.py", ".ci/run"}) - held)
    nothing("the wheel lacks", code - set(sizes))
    for where, names in (("sdist", held), ("wheel", set(sizes))):
        nothing(f"the {where} should not hold", ending(names, ".c", ".o", ".pyc", ".html"))
    nothing("the sdist should not hold", ending(held, ".so", ".pyd"))

    built = {name.partition(".")[0] for name in ending(set(sizes), ".so", ".pyd")}
    typed = {path.with_suffix("").as_posix() for path in Path("tenferro").glob("*.pxd")}
    typed |= {name.removesuffix(".pyx") for name in ending(source, ".pyx")}
    nothing("compiled modules that the wheel lacks, or that it should not hold:", built ^ typed)

    total = sum(sizes.values())
    print(f"{sdist.name}: {sdist.stat().st_size / 1e6:.2f} MB, {len(held)} files")
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB, {len(sizes)} files")
    print(f"installed: {total / 1e6:.2f} MB")
    if total > MAX_INSTALLED:
        sys.exit(f"check_dist: the installed package takes more than {MAX_INSTALLED / 1e6} MB")


def ending(names: set[str], *suffixes: str) -> set[str]:
    """Those of the names that end in one of the suffixes."""
    return {name for name in names if name.endswith(suffixes)}


def nothing(what: str, names: set[str]) -> None:
    """Exit if there are names, and tell them."""
    if names:
        sys.exit(f"check_dist: {what} {', '.join(sorted(names))}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
