"""Time tenferro and the other libraries that are installed against hand-written NumPy gradients.

    python benchmarks/compare.py                               # all workloads, all installed peers
    python benchmarks/compare.py --only W1,W6 --peers tenferro --out run.json
    python benchmarks/compare.py --report run.json other.json  # Markdown, nothing is run

Each workload is forward and full gradient.  A library's loss and gradients are first checked
against the hand-written ones; then the two are timed alternately in one process, made for that
pair, and the figure is the median of their ratio, pair by pair.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

if not __package__:
    # Run as a script.  The clone goes last, so that an installed tenferro is the one that is measured.
    sys.path.append(str(Path(__file__).resolve().parent.parent))

from benchmarks import footprint, report
from benchmarks.pairs import QUICK, Effort, alternate, clock, quartiles, ratios
from benchmarks.peers import PEERS
from benchmarks.variants import VARIANTS
from benchmarks.workloads import CASES

LIMIT = 900  # seconds, for one process
QUIET = 0.08  # cores that other processes may use while a pair is timed ...
ATTEMPTS = 3  # ... before it is timed again, this often at most; the quietest one counts


# --------------------------------------------------------------------------
# A pair, in a process of its own
# --------------------------------------------------------------------------


def keep_memory() -> None:
    """Let freed memory stay in the process: glibc neither maps nor trims large blocks."""
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or not (mallopt(-4, 0) and mallopt(-1, 2**31 - 1)):  # M_MMAP_MAX, M_TRIM_THRESHOLD
        raise SystemExit("--keep-memory works with glibc alone; leave it out")


def busy_seconds() -> float:
    """CPU time that anything on this machine has used, stolen time included; 0 where it is not known."""
    try:
        fields = Path("/proc/stat").read_text().split(None, 9)[1:9]
    except OSError:
        return 0.0
    user, nice, system, _, _, irq, softirq, steal = map(int, fields)
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def measure(name: str, label: str, quick: bool, keep: bool) -> dict:
    """Check and time one library on one workload, against the hand-written gradient."""
    if keep:
        keep_memory()
    case = CASES[name]
    params, consts = case.inputs()
    baseline = PEERS["numpy"].open()(case, params, consts)
    try:
        call = (PEERS.get(label) or VARIANTS[name][label]).open()(case, params, consts)
        start = clock()
        result = call()
        first = clock() - start
    except NotImplementedError as error:
        op = getattr(error, "op", None)  # NoRuleError says which function it met
        return {"na": f"no rule: {op}" if op else str(error)}
    worst = case.check(result, baseline())
    del result

    start, busy, own = clock(), busy_seconds(), time.process_time()
    pairs = alternate(baseline, call, QUICK if quick else Effort())
    wall = clock() - start
    others = busy_seconds() - busy - (time.process_time() - own)
    return {
        "ratio": ratios(pairs),
        "numpy": quartiles([by_hand for by_hand, _ in pairs]),
        "time": quartiles([seconds for _, seconds in pairs]),
        "pairs": len(pairs),
        "first": first,
        "error": worst,
        "others": max(0.0, others / wall),
    }


def peak_memory(name: str, label: str) -> dict:
    """Peak resident memory of three calls in MB, and that before the first: imports and inputs."""

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
            2**20 if sys.platform == "darwin" else 1024
        )

    case = CASES[name]
    params, consts = case.inputs()
    call = PEERS[label].open()(case, params, consts)
    before = peak()
    try:
        for _ in range(3):
            call()
    except NotImplementedError as error:
        return {"na": str(error)}
    return {"before": before, "peak": peak()}


WORK = {"measure": measure, "peak_memory": peak_memory, "machine": footprint.machine}


def in_process(work: str, *args, threads: int | None = None) -> dict:
    """What a function of ``WORK`` returns in a new process; {"failed": why} where it raises."""
    env = dict(os.environ)
    if threads:
        env |= {f"{blas}_NUM_THREADS": str(threads) for blas in ("OPENBLAS", "MKL", "OMP", "BLIS", "VECLIB")}
    command = [sys.executable, os.path.abspath(__file__), "--worker", json.dumps([work, *args])]
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {LIMIT} s"}
    if done.returncode:
        return {"failed": done.stderr.strip()[-800:] or f"exit status {done.returncode}"}
    return json.loads(done.stdout.splitlines()[-1])


def quietest(name: str, label: str, options: argparse.Namespace) -> dict:
    """A pair, timed again while others keep the machine busy."""
    results: list[dict] = []
    while not results or (
        not options.quick and len(results) < ATTEMPTS and results[-1].get("others", 0) > QUIET
    ):
        results.append(
            in_process(
                "measure", name, label, options.quick, options.keep_memory, threads=options.blas_threads
            )
        )
    return min(results, key=lambda result: result.get("others", 0.0))


# --------------------------------------------------------------------------
# The run
# --------------------------------------------------------------------------


def listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def chosen_cases(options: argparse.Namespace) -> list[str]:
    starts = listed(options.only)
    for start in starts:
        if not any(name.startswith(start) for name in CASES):
            sys.exit(f"compare.py: no workload starts with {start!r}; there are: {', '.join(CASES)}")
    names = [name for name in CASES if not starts or name.startswith(tuple(starts))]
    return names[:1] if options.quick and not starts else names


def chosen_peers(options: argparse.Namespace) -> list[str]:
    names = listed(options.peers) or list(PEERS)
    for name in names:
        if name not in PEERS:
            sys.exit(f"compare.py: no peer is called {name!r}; there are: {', '.join(PEERS)}")
    missing = dict.fromkeys(PEERS[name].module for name in names if not PEERS[name].installed)
    for module in missing:
        note(f"{module} is not installed: skipped")
    present = [name for name in names if PEERS[name].module not in missing]
    return present or sys.exit("compare.py: none of these peers is installed")


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run(options: argparse.Namespace) -> dict:
    """Time every pair that was chosen; a line for each as it finishes."""
    peers, names = chosen_peers(options), chosen_cases(options)
    result: dict = {
        "started": time.strftime("%Y-%m-%d %H:%M"), "machine": footprint.machine_kind(),
        "versions": footprint.versions(peers), "quick": options.quick, "keep_memory": options.keep_memory,
        "blas_threads": options.blas_threads, "pairs": {},
    }  # fmt: skip
    started = clock()

    def save() -> None:
        result["seconds"] = clock() - started
        if options.out:
            Path(options.out).write_text(json.dumps(result, indent=1) + "\n")

    for name in names:
        variants = VARIANTS.get(name, {}) if options.variants else {}
        for label in [*peers, *(label for label, peer in variants.items() if peer.installed)]:
            found = quietest(name, label, options)
            result["pairs"].setdefault(name, {})[label] = found
            print(report.line(name, label, found), flush=True)
            save()
    if options.footprint:
        result["footprint"] = footprint.footprint(peers, in_process, note)
    save()
    return result


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="compare.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--only", default="", metavar="W1,W2", help="workloads whose names start with one of these")
    add(
        "--peers",
        default="",
        metavar="A,B",
        help=f"of {', '.join(PEERS)} (numpy: itself again, which shows the noise)",
    )
    add("--variants", action="store_true", help="also other ways to write the workloads")
    add(
        "--footprint",
        action="store_true",
        help="also import time, installed size, peak memory, NumPy's own speed",
    )
    add(
        "--keep-memory",
        action="store_true",
        help="without page faults: freed memory stays in the process (glibc)",
    )
    add("--blas-threads", type=int, metavar="N", help="how many threads BLAS may use")
    add(
        "--quick",
        action="store_true",
        help="see that it runs: two pairs each, the first workload unless --only",
    )
    add("--out", metavar="FILE", help="write the results as JSON")
    add("--report", nargs="*", metavar="FILE", help="print Markdown: of these results, or of this run")
    add("--worker", help=argparse.SUPPRESS)
    return parser


def saved(path: str) -> dict:
    """The results that --out wrote to a file."""
    try:
        found = json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        sys.exit(f"compare.py: {path}: {error}; --report takes files that --out has written")
    if not isinstance(found, dict) or "pairs" not in found:
        sys.exit(f"compare.py: {path} holds no results; --report takes files that --out has written")
    return found


def main(argv: list[str] | None = None) -> int:
    """Run the command; 1 if a pair failed."""
    options = arguments().parse_args(argv)
    if options.worker:
        work, *args = json.loads(options.worker)
        print(json.dumps(WORK[work](*args)))
        return 0
    if options.report:
        report.report([saved(path) for path in options.report])
        return 0
    result = run(options)
    if options.report is not None:
        print()
        report.report([result])
    return int(any("failed" in found for labels in result["pairs"].values() for found in labels.values()))


if __name__ == "__main__":
    sys.exit(main())
