"""What a library costs beside time (import, disk, memory), and what machine this is."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from .pairs import Effort, calls_per_sample, clock, quartiles, sampled
from .peers import PEERS

IMPORTS = {
    "numpy": ("numpy",), "tenferro": ("tenferro",), "autograd": ("autograd.numpy",), "mygrad": ("mygrad",),
    "torch-1t": ("torch",), "jax-jit": ("jax", "jax.numpy"),
}  # fmt: skip
MEMORY_CASES = ("W1 seed n=1e7", "W2 chain n=1e6")


def machine_kind() -> str:
    """The machine and what runs on it, without its name."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    blas = {f"{b['internal_api']} {b['version']}, {b['num_threads']} threads" for b in blas_in_use()}
    parts = [f"{model}, {os.cpu_count()} cores", platform.system(), f"Python {platform.python_version()}"]
    return ", ".join([*parts, *sorted(blas)])


def blas_in_use() -> list[dict]:
    """The BLAS libraries that NumPy has loaded, where threadpoolctl is there to tell."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return []
    return [info for info in threadpool_info() if info["user_api"] == "blas"]


def versions(peers: Sequence[str]) -> dict[str, str]:
    """The versions of NumPy and of the peers."""
    found = {}
    for module in dict.fromkeys(["numpy", *(PEERS[peer].module for peer in peers)]):
        try:
            found[module] = importlib.metadata.version(module)
        except importlib.metadata.PackageNotFoundError:
            found[module] = "(not installed, from its source folder)"
    return found


def footprint(peers: Sequence[str], in_process: Callable[..., dict], note: Callable[[str], None]) -> dict:
    """Import times in ms, installed sizes in MB, peak memory in MB, seconds of plain NumPy calls."""
    note("import times")
    modules = [module for peer in peers for module in IMPORTS.get(peer, ())]
    imports = {"(bare python)": "pass", "numpy": "import numpy"} | {m: f"import {m}" for m in modules}
    note("peak memory")
    memory = {name: {peer: in_process("peak_memory", name, peer) for peer in peers} for name in MEMORY_CASES}
    note("NumPy itself")
    return {
        "imports": import_times(imports),
        "sizes": {PEERS[peer].module: installed_mb(PEERS[peer].installs) for peer in peers},
        "memory": memory,
        "machine": in_process("machine"),
    }


def import_times(statements: dict[str, str], rounds: int = 7) -> dict[str, float]:
    """Wall time of new processes, which take turns; the first round only fills the file cache."""
    walls: dict[str, list[float]] = {name: [] for name in statements}
    for _ in range(rounds + 1):
        for name, statement in statements.items():
            start = clock()
            # the folder that this process found tenferro in, not the one it was started in
            subprocess.run([sys.executable, "-P", "-c", statement], check=True)
            walls[name].append(1000 * (clock() - start))
    return {name: statistics.median(found[1:]) for name, found in walls.items()}


def installed_mb(distributions: Sequence[str]) -> dict[str, float]:
    """Disk space of what the distributions list; those that are not installed are left out."""
    from .package import installed  # here, as it imports tenferro

    sizes = {}
    for name in distributions:
        if name == "tenferro":
            sizes[name] = sum(path.stat().st_size for path in installed().values()) / 2**20
            continue
        try:
            files = importlib.metadata.files(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        paths = {os.path.realpath(str(f.locate())) for f in files}
        sizes[name] = sum(os.stat(p).st_size for p in paths if os.path.exists(p)) / 2**20
    return sizes


def machine() -> dict[str, float]:
    """Seconds per call of plain NumPy: what any library here stands on."""
    effort = Effort(total=0.5)

    def median(call: Callable[[], object]) -> float:
        calls = calls_per_sample(call, effort)
        start, samples = clock(), []
        while len(samples) < effort.pairs or clock() - start < effort.total:
            samples.append(sampled(call, calls))
        return quartiles(samples)["median"]

    out = {}
    source, target = np.ones(10**7), np.zeros(10**7)
    out["np.copyto, 80 MB"] = median(lambda: np.copyto(target, source))
    halves = [(target[: 5 * 10**6], source[: 5 * 10**6]), (target[5 * 10**6 :], source[5 * 10**6 :])]
    with ThreadPoolExecutor(2) as pool:
        out["np.copyto, 80 MB, 2 threads"] = median(lambda: list(pool.map(lambda h: np.copyto(*h), halves)))
    for n in (2, 10**6, 10**7):
        x = np.random.default_rng(0).standard_normal(n)
        y = np.empty_like(x)
        calls: dict[str, Callable[[], object]] = {
            "np.multiply(x, x, out=y)": lambda x=x, y=y: np.multiply(x, x, out=y),
            "np.multiply(x, x)": lambda x=x: np.multiply(x, x),
            "np.sum(x)": lambda x=x: np.sum(x),
            "np.add.reduce(x)": lambda x=x: np.add.reduce(x),
        }
        if n == 2:
            calls |= {"x * x": lambda x=x: x * x, "x[0]": lambda x=x: x[0], "x[:-1]": lambda x=x: x[:-1]}
        for what, call in calls.items():
            out[f"{what}, n={n:.0e}" if n > 2 else f"{what}, n=2"] = median(call)
    return out
