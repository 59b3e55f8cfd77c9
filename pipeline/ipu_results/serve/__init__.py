"""Answer questions of programs about the record over the Model Context Protocol (MCP), and cite results.

Every answer carries units, who measured, how the figure came to be, flags and the citation. What may not be answered is
refused with a code for programs, a reason and a next step for people.
"""

from __future__ import annotations

from ipu_results.errors import IpuResultsError
from ipu_results.serve.cite import cite
from ipu_results.serve.table import format_cited_table

__all__ = ["CODES", "NEXT_STEPS", "RefusalError", "cite", "format_cited_table"]

CODES = {
    "different-tasks": "training against inference",
    "different-networks": "two networks",
    "different-workloads": "another phase of training, sequence length, packing, sparsity or input size",
    "different-figures": "two kinds of figure, such as time to train against throughput",
    "different-units": "a unit that does not fit the figure, such as minutes for a throughput",
    "different-items": "items of two kinds, such as images against sequences",
    "different-latencies": "latencies that time different things, such as an item against a batch",
    "different-power-scopes": "power of different parts of a machine, or of a part that is not stated",
    "different-batch-sizes": "inference with batch sizes more than a factor of 2 apart, or stated on one side only",
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
NEXT_STEPS = {  # of a refusal that has no step of its own
    "different-tasks": "state the task: training is compared with training, inference with inference",
    "different-networks": "compare results of one network: find lists them",
    "different-workloads": "compare results that agree in phase, sequence_length, packed, sparsity and input size",
    "different-figures": "find with figure lists results that print it",
    "different-units": "overview lists the unit of each figure",
    "different-items": "compare results that count the same item",
    "different-latencies": "compare latencies of the same latency_basis: find takes it as a condition",
    "different-power-scopes": "the view energy_ipu_gpu, by sql, has pairs of one document with both scopes",
    "different-batch-sizes": "compare results whose batch_size is stated and within a factor of 2",
    "different-chip-counts": "ask with chips_basis per-chip or whole-machine",
    "unknown-chip-count": "ask with chips_basis whole-machine, and say that the number of chips is not known",
    "mlperf-with-other": "state benchmark, division and mlperf_round: a score is compared within its benchmark",
    "mlperf-divisions": "state division closed or open, and the round",
    "mlperf-rounds": "compare scores of one round, or of rounds that the table mlperf_comparability lists together",
    "emulated-not-measured": "ask with origin emulated if predictions of the emulator will do",
    "submitted-not-requested": "ask with relationship submitted if figures that no one else checked will do",
    "flagged": "read the flags with provenance, and report them with the figure",
    "same-measurement": "compare it with a result of its own: find leaves repeated prints out",
    "not-printed": "say that the figure is not printed; find without figure shows what is",
    "no-match": "leave out a condition; overview lists networks and machines",
    "unknown-word": "overview lists the words of the record",
    "rebuilt": "start the server again",
    "wrong-input": "see the arguments of the tool",
    "not-read-only": "write one SELECT",
    "no-file-access": "read the tables and views that overview lists",
    "wrong-sql": "correct the statement; the table columns lists every table, view and column",
    "too-long": "select fewer rows or columns, or aggregate",
    "too-large": "select fewer rows or columns, or aggregate",
}


class RefusalError(IpuResultsError):
    """A question that may not be answered. `code` is one of CODES."""

    def __init__(self, code: str, reason: str, next_step: str = "") -> None:
        assert code in CODES, code
        self.code, self.reason, self.next_step = code, reason, next_step or NEXT_STEPS[code]
        super().__init__(f"{code}: {reason}")
