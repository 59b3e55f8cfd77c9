"""Why a question is refused: a code for programs, a reason and a next step for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb

from ipu_results.comparison.comparable import load_rows
from ipu_results.comparison.measurement import KnownWords, load_known_words
from ipu_results.errors import IpuResultsError
from ipu_results.ground.sql import run_query
from ipu_results.ground.text import to_json_value
from ipu_results.schema import quote, table
from ipu_results.serve.cite import DatasetVersion, format_citation, read_dataset_version
from ipu_results.serve.facts import CitedResult, describe_row, load_results
from ipu_results.store.query import connect_warehouse, read_build_id

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


Row = Mapping[str, Any]

SUBMITTED, EMULATED = "submitted", "emulated"
NEAREST = 3
FIGURES = (
    *("throughput", "latency_ms", "minutes", "efficiency", "power_w", "energy_per_item_j", "run_energy_j"),
    *("time_to_result_s", "quality_value"),
)
MAIN_FIGURES = ("throughput", "latency_ms", "minutes", "power_w")  # named where a row does not print them
CONDITIONS = (
    *("publisher", "submitter", "published_on", "network", "variant", "task", "phase", "platform", "chip", "chips"),
    *(
        "batch_size",
        "sequence_length",
        "packed",
        "sparsity",
        "dataset",
        "framework",
        "sdk_version",
        "effective_precision",
    ),
    *("latency_basis", "latency_kind", "power_scope", "conditions", "benchmark", "division", "mlperf_round"),
    *("mlperf_id", "run_id", "calibration_id", "suspect", "same_as"),
)
MICROBENCHMARK_CONDITIONS = (
    *("publisher", "device", "device_count", "operation", "shape", "precision", "metric", "statistic", "sdk_version"),
    *("canonical_value", "canonical_unit", "conditions"),
)
ORIGINS = {
    "published": "printed in a document of its publisher",
    "official": "computed from the official logs of MLPerf",
    "measured": "measured on a machine",
    EMULATED: "emulated, not measured",
}
MICROBENCHMARKS = """
    SELECT
        microbenchmark_id AS result_id, m.*, 'published' AS origin, NULL::VARCHAR AS suspect,
        (SELECT count(*) FROM flags f WHERE f.result_id = m.microbenchmark_id AND severity = 'error') AS errors
    FROM microbenchmarks m
"""
VALUE = "value"  # the figure of a microbenchmark


@dataclass(frozen=True)
class Record:
    """The warehouse, open for reading, with the rows of `results` and the words that it knows.

    `microbenchmarks` are the rows of that table, with `result_id`, `origin`, `errors` and `suspect` as results have.
    """

    folder: Path
    connection: duckdb.DuckDBPyConnection
    version: DatasetVersion
    words: KnownWords
    rows: Sequence[Row]
    microbenchmarks: Sequence[Row]

    @cached_property
    def sources(self) -> Mapping[str, Row]:
        """Return everything that has an id of its own, by id."""
        return {row["result_id"]: row for row in (*self.rows, *self.microbenchmarks)}

    def get_row(self, result_id: str) -> Row:
        """Return the row of an id. Raises RefusalError for an unknown one."""
        row = self.sources.get(result_id)
        if row is None:
            raise RefusalError("unknown-word", f"unknown result {result_id!r}", "find gives the ids of results")
        if "microbenchmark_id" in row:
            reason = f"{result_id} is a microbenchmark, and this tool takes results"
            raise RefusalError("unknown-word", reason, "provenance takes it; the view replications, by sql, pairs it")
        return row

    def cite(self, ids: Sequence[str]) -> str:
        """Return the citation of results and microbenchmarks as Markdown, empty for none."""
        if not ids:
            return ""
        with self.connection.cursor() as cursor:
            return format_citation(load_results(cursor, ids), self.version, "markdown")

    def load(self, ids: Sequence[str]) -> tuple[list[dict[str, Any]], str]:
        """Return what an answer says of results, and their citation as Markdown."""
        if not ids:
            return [], ""
        with self.connection.cursor() as cursor:
            results = load_results(cursor, ids)
            where = f"result_id IN ({', '.join(map(quote, ids))})"
            flags = run_query(cursor, f"FROM flags WHERE {where} ORDER BY ALL").to_pylist()
        described = [_describe(result, self.sources[result.result_id], flags) for result in results]
        return described, format_citation(results, self.version, "markdown")


def open_record(folder: Path) -> Record:
    """Open a warehouse. Raises WarehouseError if there is none."""
    connection = connect_warehouse(folder)
    version = read_dataset_version(folder, read_build_id(folder))
    microbenchmarks = run_query(connection, MICROBENCHMARKS).to_pylist()
    return Record(folder, connection, version, load_known_words(connection), load_rows(connection), microbenchmarks)


def get_unit(figure: str, row: Row) -> str | None:
    """Return the unit of a column of `results`, with the item of the row in it."""
    unit = table("results").column(figure).unit
    return unit.replace("item", row["item"] or "item") if unit else None


def _describe(result: CitedResult, row: Row, flags: Sequence[Row]) -> dict[str, Any]:
    printed = {figure.column: figure for figure in result.figures}
    figures: dict[str, Any] = {}
    is_result = "microbenchmark_id" not in row
    for name in FIGURES if is_result else (VALUE,):
        if row[name] is not None:
            # `minutes` is the printed time to train in another unit
            own = printed.get({"minutes": "time_to_train_s"}.get(name, name))
            figures[name] = {
                "value": row[name],
                "unit": get_unit(name, row) if is_result else row["unit"],
                "as_printed": own and " ".join(filter(None, (own.text, own.unit))),
                "place": own and own.place,
            }
    described = {
        "result_id": result.result_id,
        "what": describe_row(result.row),
        "relationship": row["relationship"],
        "origin": row["origin"],
        "how_obtained": ORIGINS[row["origin"]],
        "status": result.status,
        "figures": figures,
        "not_printed": [name for name in MAIN_FIGURES if is_result and row[name] is None],
        "flags": [
            {name: flag[name] for name in ("rule", "severity", "column_name", "message")}
            for flag in flags
            if flag["result_id"] == result.result_id
        ],
        "conditions": {name: row[name] for name in (CONDITIONS if is_result else MICROBENCHMARK_CONDITIONS)},
    }
    return {name: to_json_value(value) for name, value in described.items()}


def suggest(word: str, known: Iterable[str]) -> str:
    """Name the known words that are nearest to an unknown one."""
    names = sorted(set(known))
    near = get_close_matches(word, names, n=NEAREST, cutoff=0.4) or names[:12]
    return f"nearest: {', '.join(near)}"
