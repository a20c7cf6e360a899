"""The results of `compare.py` as lines and as Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from .peers import PEERS
from .workloads import CASES

# how far apart the runs of a report may lie before a figure is marked
APART = 0.15


def microseconds(seconds: float) -> str:
    us = seconds * 1e6
    return f"{us:.2f}" if us < 10 else f"{us:.1f}" if us < 100 else f"{us:,.0f}"


def times(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:,.0f}"


def line(name: str, label: str, found: dict) -> str:
    """A pair's result, as it finishes."""
    head = f"{name:27} {label:28}"
    if "na" in found:
        return f"{head} n/a ({found['na']})"
    if "failed" in found:
        return f"{head} FAILED: {found['failed'].splitlines()[-1]}"
    median, q1, q3 = (times(found["ratio"][key]) for key in ("median", "q1", "q3"))
    ours, numpys = (microseconds(found[key]["median"]) for key in ("time", "numpy"))
    return (
        f"{head} {median:>7} times NumPy ({q1} to {q3})   {ours:>9} against {numpys:>9} us"
        f"   {found['pairs']} pairs, others busy {found['others']:.2f}"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print("| " + " | ".join(head) + " |")
    print("| --- |" + " ---: |" * (len(head) - 1))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def merged(runs: Sequence[dict], name: str, label: str, what: str) -> tuple[float, float] | None:
    """The median of the runs' medians, and how far apart they lie; None where it was not timed."""
    found = [run["pairs"].get(name, {}).get(label, {}) for run in runs]
    medians = [f[what]["median"] for f in found if what in f]
    if not medians:
        return None
    return statistics.median(medians), (max(medians) - min(medians)) / min(medians)


def cell(runs: Sequence[dict], name: str, label: str) -> str:
    """``ratio (µs)`` of a pair."""
    ratio, seconds = merged(runs, name, label, "ratio"), merged(runs, name, label, "time")
    if ratio is None or seconds is None:
        found = runs[0]["pairs"].get(name, {}).get(label, {})
        return f"n/a ({found['na']})" if "na" in found else "failed" if "failed" in found else ""
    return f"{times(ratio[0])} ({microseconds(seconds[0])}){' ~' if ratio[1] > APART else ''}"


def by_hand(runs: Sequence[dict], name: str) -> str:
    """The baseline's time, over all of a workload's pairs."""
    found = [
        f["numpy"]["median"] for run in runs for f in run["pairs"].get(name, {}).values() if "numpy" in f
    ]
    return microseconds(statistics.median(found)) if found else ""


def goals(runs: Sequence[dict]) -> Iterable[tuple[str, str, str, str]]:
    """What tenferro was to reach, and what it reached."""
    for name, case in CASES.items():
        ratio = merged(runs, name, "tenferro", "ratio")
        if case.goal is not None and ratio:
            yield name, f"{case.goal}", times(ratio[0]), "yes" if ratio[0] <= case.goal else "no"
    small, large = (merged(runs, f"W6 indexing n={n}", "tenferro", "time") for n in ("1001", "100001"))
    if small and large:
        ratio = large[0] / small[0]
        yield "W6 n=100001 over n=1001, µs", "1.2", times(ratio), "yes" if ratio <= 1.2 else "no"


def noise(runs: Sequence[dict]) -> str:
    """How far the figures can be trusted."""
    found = [f for run in runs for labels in run["pairs"].values() for f in labels.values() if "ratio" in f]
    if not found:
        return "nothing was timed"
    spread = sorted((f["ratio"]["q3"] - f["ratio"]["q1"]) / f["ratio"]["median"] for f in found)
    others = sorted(f["others"] for f in found)
    text = (
        f"interquartile range of a pair's ratio {median_and_tail(spread)}; "
        f"cores busy with others {statistics.median(others):.2f} (median), {others[-1]:.2f} (most)"
    )
    itself = [ratio[0] for name in CASES if (ratio := merged(runs, name, "numpy", "ratio"))]
    if itself:
        text += f"; NumPy against itself {times(min(itself))} to {times(max(itself))}"
    if len(runs) > 1:
        apart = sorted(
            ratio[1]
            for name, labels in runs[0]["pairs"].items()
            for label in labels
            if (ratio := merged(runs, name, label, "ratio"))
        )
        text += f"; runs apart {median_and_tail(apart)}"
    return text


def median_and_tail(ordered: Sequence[float]) -> str:
    return (
        f"{statistics.median(ordered):.1%} (median), {ordered[len(ordered) * 9 // 10]:.1%} (90th percentile)"
    )


def conditions(run: dict) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    extra = [
        "quick: says nothing of speed" if run["quick"] else "",
        "freed memory kept" if run["keep_memory"] else "",
        f"{run['blas_threads']} BLAS threads" if run["blas_threads"] else "",
    ]
    notes = "".join(f"; {e}" for e in extra if e)
    return f"{run['started']}, {run['machine']}; {versions}; {run['seconds'] / 60:.0f} min{notes}"


def report(runs: Sequence[dict]) -> None:
    """Print Markdown."""
    for run in runs:
        print(f"- {conditions(run)}")
    print(f"- Noise: {noise(runs)}\n")
    print("Ratio to the hand-written NumPy gradient, median over pairs, and time in µs")
    print(f"(~: the runs' ratios are more than {APART:.0%} apart).\n")
    labels = list(
        dict.fromkeys(label for run in runs for labels in run["pairs"].values() for label in labels)
    )
    peers = [label for label in labels if label in PEERS and label != "numpy"]
    names = list(dict.fromkeys(name for run in runs for name in run["pairs"]))
    rows = [[name, by_hand(runs, name), *(cell(runs, name, label) for label in peers)] for name in names]
    table(["workload", "by hand, µs", *peers], rows)

    reached = [] if any(run["quick"] for run in runs) else list(goals(runs))
    if reached:
        table(["goal for tenferro", "at most", "reached", ""], reached)
    others = [
        [name, label, text]
        for name in names
        for label in labels
        if label not in PEERS and (text := cell(runs, name, label))
    ]
    if others:
        table(["workload", "written otherwise", "ratio (µs)"], others)
    for run in runs:
        if "footprint" in run:
            footprint_tables(run["footprint"])


def footprint_tables(found: dict) -> None:
    """Import time, size, memory; NumPy's own speed."""
    bare, numpy = found["imports"]["(bare python)"], found["imports"]["numpy"]
    rows = [
        [module, f"{ms:.0f}", f"{ms - bare:.0f}", f"{ms - numpy:.0f}" if module != "(bare python)" else ""]
        for module, ms in found["imports"].items()
    ]
    table(["import", "ms", "beyond Python", "beyond NumPy"], rows)
    rows = [
        [peer, f"{sum(parts.values()):.1f}", ", ".join(f"{name} {mb:.1f}" for name, mb in parts.items())]
        for peer, parts in found["sizes"].items()
    ]
    table(["installed beyond NumPy", "MB", "of which"], rows)
    for name, peers in found["memory"].items():
        rows = [
            [peer, f"{f['peak']:.0f}", f"{f['before']:.0f}"] if "peak" in f else [peer, "n/a", ""]
            for peer, f in peers.items()
        ]
        table([f"peak memory, {name}", "MB", "before the first call"], rows)
    table(["NumPy itself", "µs"], [[what, microseconds(s)] for what, s in found["machine"].items()])
