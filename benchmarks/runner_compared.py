"""Configurations side by side: which there are, and what their rounds say as ratios and as shares of the peak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from ipu_results.runner.blocks import Block
from ipu_results.runner.estimate import Estimate, group_by_round

from benchmarks.report import Report, Table, Target, Value, shown

BEST, BEST_FP32, PLAIN, TORCH = "the best", "the best in fp32", "plain onnxruntime", "torch eager"
TO_TORCH, TO_PLAIN, OF_PEAK = 1.5, 1.0, 70.0


@dataclass(frozen=True, slots=True)
class Contender:
    """`plain` is one session as a library gives it, no option set. `threads` are those of each session.

    `overlap` is whether images are made ready by a thread of their own.
    """

    backend: str
    precision: str
    sessions: int
    threads: int | None
    plain: bool = False
    overlap: bool = True

    @property
    def name(self) -> str:
        which = f"{self.backend} {'plain' if self.plain else self.precision}"
        return f"{which}, {self.sessions} × {self.threads or 'all'}{'' if self.overlap else ', serial'}"


@dataclass(frozen=True, slots=True)
class Scanned:
    """Images per second of one short block. `precision` and `threads` are what the session said of itself."""

    contender: Contender
    batch: int
    throughput: float
    cosine: float | None
    precision: str
    threads: int | None


@dataclass(frozen=True, slots=True)
class Compared:
    name: str
    scanned: Scanned
    row: Estimate
    blocks: Sequence[Block]


def contenders(
    precisions: Mapping[str, Sequence[str]], sessions: Sequence[int], cores: int, torch: bool
) -> list[Contender]:
    """Sessions share all cores evenly, or all but one, which the images have; plain ones do both in turn, too."""
    found = [
        Contender(backend, precision, count, threads)
        for backend, some in precisions.items()
        for precision in some
        for count in sessions
        for threads in dict.fromkeys(max(1, (cores - spare) // count) for spare in (0, 1))
    ]
    libraries = ("onnxruntime", "torch") if torch else ("onnxruntime",)
    plain = [Contender(one, "fp32", 1, None, True, overlap) for one in libraries for overlap in (True, False)]
    return [*found, *plain]


def chosen(scanned: Sequence[Scanned]) -> list[tuple[str, Scanned]]:
    """The fastest of all, the fastest in fp32, of plain ONNX Runtime and of torch, each at its best batch size."""
    tuned = [one for one in scanned if not one.contender.plain]
    plain = [one for one in scanned if one.contender.plain]
    sorts = {
        BEST: tuned,
        BEST_FP32: [one for one in tuned if one.contender.precision == "fp32"],
        PLAIN: [one for one in plain if one.contender.backend == "onnxruntime"],
        TORCH: [one for one in plain if one.contender.backend == "torch"],
    }
    return [(name, max(some, key=lambda one: one.throughput)) for name, some in sorts.items() if some]


def ratio(of: Sequence[Block], to: Sequence[Block]) -> float:
    """Median over rounds of how many times as much is done a second in the same round."""
    return median(one / two for one, two in zip(group_by_round(of), group_by_round(to), strict=True))


def reported(scanned: Sequence[Scanned], found: Sequence[Compared], peak: Sequence[float], flop: float) -> Report:
    """`peak` are GFLOP/s of a matrix product by round, `flop` the operations of one image."""
    by_name = {one.name: one for one in found}
    best, fp32, plain, torch = (by_name.get(name) for name in (BEST, BEST_FP32, PLAIN, TORCH))
    targets: list[Target] = []
    if best and torch:
        targets.append(Target("the best / torch eager", ratio(best.blocks, torch.blocks), TO_TORCH, True))
    if best and plain:
        targets.append(Target("the best / plain onnxruntime", ratio(best.blocks, plain.blocks), TO_PLAIN, True))
    if fp32:
        targets.append(Target("% of the fp32 peak, the best in fp32", _percent(fp32, peak, flop), OF_PEAK, True))
    return Report(
        "runner_configurations",
        f"{len(found)} of {len(scanned)} configurations in interleaved rounds",
        [_rounds(found, by_name, peak, flop), _scan(scanned)],
        targets,
        [
            f"Peak: {shown(max(peak))} GFLOP/s, the fastest of {len(peak)} products of fp32 matrices by numpy's BLAS, "
            f"on all cores before each round; their median is {shown(median(peak))}.",
            "Images are decoded and cropped beside the network in every configuration, and counted in its time.",
            "Each is at its best batch size and was chosen in the scan; its figures are those of the rounds after it.",
            *(f"{one.name} is suspect: {'; '.join(one.row.suspect)}." for one in found if one.row.suspect),
        ],
    )


def _rounds(found: Sequence[Compared], by_name: Mapping[str, Compared], peak: Sequence[float], flop: float) -> Table:
    plain, torch = by_name.get(PLAIN), by_name.get(TORCH)
    rows: list[tuple[Value, ...]] = [
        (
            *(one.name, one.scanned.contender.name, one.scanned.precision, one.scanned.batch, one.row.throughput),
            *(_throughput(one, one.row.latency_ms_high), _throughput(one, one.row.latency_ms_low), one.row.infer_ms),
            *(ratio(one.blocks, other.blocks) if other else None for other in (torch, plain)),
            *(one.row.throughput * flop / 1e9, _percent(one, peak, flop), one.scanned.cosine),
        )
        for one in found
    ]
    columns = (
        *("configuration", "which, sessions × threads", "computes in", "batch", "images/s", "from", "to", "infer ms"),
        *("/ torch eager", "/ plain", "GFLOP/s", "% of the fp32 peak", "cosine"),
    )
    return Table("Interleaved rounds", columns, rows)


def _scan(scanned: Sequence[Scanned]) -> Table:
    rows = [
        (one.contender.name, one.precision, one.batch, one.throughput, one.cosine)
        for one in sorted(scanned, key=lambda one: -one.throughput)
    ]
    columns = ("configuration", "computes in", "batch", "images/s", "least cosine with fp32")
    return Table("One short block of each", columns, rows)


def _throughput(one: Compared, latency_ms: float | None) -> float | None:
    return None if latency_ms is None else 1e3 * one.scanned.batch / latency_ms


def _percent(one: Compared, peak: Sequence[float], flop: float) -> float:
    return 100 * one.row.throughput * flop / 1e9 / max(peak)
