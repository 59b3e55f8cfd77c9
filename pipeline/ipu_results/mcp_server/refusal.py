"""Why a question is refused: a code for programs, a reason and a next step for people."""

from __future__ import annotations

from ipu_results.errors import IpuResultsError

CODES = {
    "different-tasks": "training against inference",
    "different-networks": "two networks",
    "different-workloads": "another phase of training, sequence length, packing or input size",
    "different-figures": "two kinds of figure, such as time to train against throughput",
    "different-units": "a unit that does not fit the figure, such as minutes for a throughput",
    "different-items": "items of two kinds, such as images against sequences",
    "different-latencies": "latencies that time different things, such as an item against a batch",
    "different-power-scopes": "power of different parts of a machine, or of a part that is not stated",
    "different-batch-sizes": "batch sizes more than a factor of 2 apart, or not stated",
    "different-chip-counts": "machines with different numbers of chips, without a choice of per chip or whole machine",
    "unknown-chip-count": "per chip, where the source does not say how many chips took part",
    "mlperf-with-other": "an MLPerf score against a figure of another kind, or of another MLPerf benchmark",
    "mlperf-divisions": "MLPerf closed against open, or a division that is not stated",
    "mlperf-rounds": "MLPerf rounds that MLCommons lists as not comparable",
    "emulated-not-measured": "an emulated figure in the place of a measured one",
    "submitted-not-requested": "only figures that users handed in, without a request for such",
    "flagged": "a row that a quality rule flags as an error, or that is marked as suspect",
    "same-measurement": "a result compared with itself, or with another print of the same measurement",
    "not-printed": "no source prints this figure: it is unknown, and it is not zero",
    "no-match": "the record has no such row",
    "unknown-word": "a network, machine, id or other word that the record does not know",
    "rebuilt": "the dataset was built again since the server started",
    "wrong-input": "an argument that is missing, unknown or not of its type",
    "not-read-only": "an SQL statement that writes or changes a setting",
    "no-file-access": "an SQL statement that reads a file, a folder or an address",
    "wrong-sql": "an SQL statement that DuckDB does not accept",
    "too-long": "a request that took longer than the limit",
    "too-large": "a request or an answer beyond the limits on memory and size",
}


class RefusalError(IpuResultsError):
    """A question that may not be answered. `code` is one of CODES."""

    def __init__(self, code: str, reason: str, next_step: str = "") -> None:
        assert code in CODES, code
        self.code, self.reason, self.next_step = code, reason, next_step
        super().__init__(f"{code}: {reason}")
