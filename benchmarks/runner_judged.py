"""Sweeps on a real machine beside its quiet value, which is known from the blocks that nothing was started beside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from ipu_results.runner.blocks import Block
from ipu_results.runner.estimate import DEFAULT, Estimate, estimate, find_disturbances

from benchmarks.report import Report, Table, Target, Value, shown
from benchmarks.runner_competitor import WORK, Spell, share_of
from benchmarks.runner_naive import LoadGen, Naive, share

OFF = 0.05  # of the quiet value: what a row must not be without saying so
CAUGHT = 90.0  # %


@dataclass(frozen=True, slots=True)
class Tried:
    """One sweep with what was measured next to it, and the part of each one's time in which the competitor worked."""

    competitor: bool
    row: Estimate
    blocks: Sequence[Block]
    marked: Sequence[bool]
    shares: Sequence[float]
    naive: Naive
    naive_share: float
    loadgen: LoadGen | None
    loadgen_share: float

    def holds(self, quiet_ms: float) -> bool:
        low, high = self.row.latency_ms_low, self.row.latency_ms_high
        return low is not None and high is not None and low <= quiet_ms <= high

    def misleads(self, quiet_ms: float) -> bool:
        """Whether the row is off and not marked, and its interval lies elsewhere."""
        off = abs(self.row.latency_ms / quiet_ms - 1) > OFF
        return off and not self.row.suspect and not self.holds(quiet_ms)


def quiet_of(found: Sequence[Tried], kind: str = "amortised") -> float:
    """Median pace in ms of a batch, over every block of the kind beside which no competitor worked.

    Of all of them where there is none.
    """
    each = ((block, part) for one in found for block, part in zip(one.blocks, one.shares, strict=True))
    pairs = [(pace(block), part) for block, part in each if block.kind == kind]
    return median([ms for ms, part in pairs if part == 0] or [ms for ms, _ in pairs])


def pace(block: Block) -> float:
    """Milliseconds of a batch."""
    return 1e3 * block.batch_size / block.window.throughput if block.kind == "amortised" else median(block.latencies_ms)


def counted(found: Sequence[Tried]) -> dict[str, tuple[int, int]]:
    """Blocks of each sort and how many of them are marked as disturbed."""
    quiet = {kind: quiet_of(found, kind) for kind in {block.kind for one in found for block in one.blocks}}
    each = [
        (part, pace(block) > (1 + OFF) * quiet[block.kind], mark)
        for one in found
        for block, part, mark in zip(one.blocks, one.shares, one.marked, strict=True)
    ]
    sorts: dict[str, Callable[[float, bool], bool]] = {
        f"competitor at work {WORK:.0%} of the time or more": lambda part, _: part >= WORK,
        "competitor at work, but less": lambda part, _: 0 < part < WORK,
        "no competitor": lambda part, _: part == 0,
        f"no competitor, {OFF:.0%} slower than quiet": lambda part, slow: part == 0 and slow,
        f"{OFF:.0%} slower than quiet, for whatever reason": lambda _, slow: slow,
    }
    marks = {name: [mark for part, slow, mark in each if belongs(part, slow)] for name, belongs in sorts.items()}
    return {name: (len(some), sum(some)) for name, some in marks.items()}


def judged(
    competitor: bool,
    blocks: Sequence[Block],
    loop: Naive,
    generated: LoadGen | None,
    spells: Sequence[Spell],
    best_probe_ms: float | None = None,
) -> Tried:
    """What the sweep says, and what is known of when the competitor worked. `best_probe_ms` is that of earlier ones."""
    marked = [bool(causes) for causes in find_disturbances(blocks, DEFAULT, best_probe_ms)]
    shares = [share_of(block, spells) for block in blocks]
    loadgen_share = share(generated, spells) if generated else 0.0
    row = estimate(blocks, DEFAULT, best_probe_ms)
    return Tried(competitor, row, blocks, marked, shares, loop, share(loop, spells), generated, loadgen_share)


def reported(found: Sequence[Tried], batch: int) -> Report:
    quiet_ms = quiet_of(found)
    counts = counted(found)
    (truly, caught), *_ = counts.values()
    report = Report(
        "runner_real",
        f"{len(found)} sweeps of batch {batch}, every other one beside a competitor",
        [_sweeps(found, quiet_ms), _others(found, quiet_ms), _summary(found, quiet_ms), _blocks(counts)],
        [Target(f"sweeps that mislead, of {len(found)}", sum(one.misleads(quiet_ms) for one in found), 0)],
        [
            f"Quiet machine: {shown(quiet_ms)} ms a batch, the median of all blocks beside which no competitor worked.",
            "The naive loop and LoadGen's SingleStream ran on the same session, each as long as all blocks together.",
            f"A sweep misleads when it is more than {OFF:.0%} off, not suspect, and its interval lies elsewhere.",
        ],
    )
    if truly:
        report.targets.append(
            Target("% of the competitor's blocks that are marked", 100 * caught / truly, CAUGHT, True)
        )
    suspect = {number: "; ".join(one.row.suspect) for number, one in enumerate(found) if one.row.suspect}
    report.notes += [f"Sweep {number} is suspect: {reasons}." for number, reasons in suspect.items()]
    if generated := [one.loadgen for one in found if one.loadgen]:
        ways = median(one.median_ms - one.inside_ms for one in generated)
        report.notes.append(f"Of a query {shown(ways)} ms were spent between LoadGen and the session.")
    return report


def _sweeps(found: Sequence[Tried], quiet_ms: float) -> Table:
    rows: list[tuple[Value, ...]] = [
        (
            *(number, _yes(one.competitor), 100 * sum(one.shares) / len(one.shares)),
            *(one.row.latency_ms, one.row.latency_ms_low, one.row.latency_ms_high),
            *(_off(one.row.latency_ms, quiet_ms), _yes(one.holds(quiet_ms)), one.row.disturbed_blocks),
            *(sum(part >= WORK for part in one.shares), _yes(bool(one.row.suspect))),
        )
        for number, one in enumerate(found)
    ]
    columns = (
        *("sweep", "competitor", "its share of the time, %", "ms", "low", "high", "off, %", "holds"),
        *("blocks marked", "with the competitor", "suspect"),
    )
    return Table("Sweeps", columns, rows)


def _others(found: Sequence[Tried], quiet_ms: float) -> Table:
    rows: list[tuple[Value, ...]] = [
        (
            *(number, _yes(one.competitor), 100 * one.naive_share, one.naive.mean_ms, one.naive.error_ms),
            *(_off(one.naive.mean_ms, quiet_ms), _yes(one.naive.holds(quiet_ms)), *_of_loadgen(one, quiet_ms)),
        )
        for number, one in enumerate(found)
    ]
    columns = (
        *("sweep", "competitor", "its share, %", "naive ms", "±", "off, %", "holds", "its share, %", "LoadGen mean ms"),
        *("off, %", "90th percentile ms", "off, %", "early stopping ms", "queries", "says"),
    )
    return Table("The naive loop and LoadGen next to each sweep", columns, rows)


def _of_loadgen(one: Tried, quiet_ms: float) -> tuple[Value, ...]:
    if (found := one.loadgen) is None:
        return (None,) * 8
    means = 100 * one.loadgen_share, found.mean_ms, _off(found.mean_ms, quiet_ms)
    return (*means, found.p90_ms, _off(found.p90_ms, quiet_ms), found.early_ms, found.queries, found.valid)


def _summary(found: Sequence[Tried], quiet_ms: float) -> Table:
    rows: list[tuple[Value, ...]] = []
    for name, beside in (("no competitor", False), ("competitor", True)):
        some = [one for one in found if one.competitor == beside]
        other = [one.loadgen for one in some if one.loadgen]
        sweeps, loops = [one.row.latency_ms for one in some], [one.naive.mean_ms for one in some]
        held = sum(one.holds(quiet_ms) for one in some), sum(one.naive.holds(quiet_ms) for one in some)
        suspect, invalid = sum(bool(one.row.suspect) for one in some), sum(one.valid != "VALID" for one in other)
        rows += [
            *_line(f"sweep, {name}", sweeps, quiet_ms, held[0], suspect),
            *_line(f"naive loop, {name}", loops, quiet_ms, held[1], None),
            *_line(f"LoadGen's mean, {name}", [one.mean_ms for one in other], quiet_ms, None, invalid),
            *_line(f"LoadGen's 90th percentile, {name}", [one.p90_ms for one in other], quiet_ms, None, invalid),
        ]
    columns = ("way", "times", "off, %", "at most", "largest / least, %", "interval holds", "marked as bad")
    return Table("Beside the quiet machine's value", columns, rows)


def _line(
    way: str, values: Sequence[float], quiet_ms: float, holds: int | None, bad: int | None
) -> list[tuple[Value, ...]]:
    if not values:
        return []
    off, spread = [abs(_off(value, quiet_ms)) for value in values], 100 * (max(values) / min(values) - 1)
    return [(way, len(values), median(off), max(off), spread, holds, bad)]


def _blocks(counts: Mapping[str, tuple[int, int]]) -> Table:
    rows = [
        (name, blocks, marked, 100 * marked / blocks if blocks else None) for name, (blocks, marked) in counts.items()
    ]
    return Table("Blocks and whether they are marked as disturbed", ("blocks", "number", "marked", "%"), rows)


def _off(value: float, quiet_ms: float) -> float:
    return 100 * (value / quiet_ms - 1)


def _yes(value: bool) -> str:
    return "yes" if value else "no"
