"""The views that answer first questions; each column is one of a table's, or described here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from schema.columns import Column, double, integer
from schema.generate import described_rows, quoted
from schema.tables import TABLES

ERRORS = integer("errors", "Error flags on the result.")
WARNINGS = integer("warnings", "Warning flags on the result.")


@dataclass(frozen=True, slots=True)
class View:
    """`columns` are `table.column` of the source, or a column described on its own."""

    name: str
    description: str
    columns: tuple[str | Column, ...]

    @property
    def sql(self) -> str:
        return (files("schema") / "views" / f"{self.name}.sql").read_text(encoding="utf-8")

    @property
    def described(self) -> tuple[Column, ...]:
        return tuple(column if isinstance(column, Column) else _column(column) for column in self.columns)


@cache
def _column(path: str) -> Column:
    table_name, name = path.split(".")
    return next(table for table in TABLES if table.name == table_name).column(name)


def _of(table: str, names: str) -> tuple[str, ...]:
    return tuple(f"{table}.{name}" for name in names.split())


VIEWS: tuple[View, ...] = (
    View(
        "inference",
        "Inference results of every origin, with the number of error and warning flags on each.",
        (
            *_of("results", "result_id origin publisher model variant platform chip chip_count sdk_version framework"),
            *_of("results", "precision compute_precision batch_size throughput item latency_ms latency_basis"),
            *_of("results", "latency_kind efficiency run_id suspect"),
            ERRORS,
            WARNINGS,
            *_of("results", "document_id table_name row_number published_on"),
        ),
    ),
    View(
        "training",
        "Training results other than MLPerf entries, which compare with nothing else and stand in `results`.",
        (
            *_of("results", "result_id origin publisher model variant dataset platform chip chip_count sdk_version"),
            *_of("results", "framework precision compute_precision batch_size throughput item time_to_train_s"),
            *_of("results", "quality_metric quality_value"),
            ERRORS,
            WARNINGS,
            *_of("results", "document_id table_name row_number published_on"),
        ),
    ),
    View(
        "latest",
        "For each publisher and configuration the newest published result: older page versions are left out where a "
        "newer one has the row. The batch is part of a configuration in inference and not in training.",
        _of(
            "results",
            "result_id publisher task model variant dataset platform chip_count sdk_version framework precision "
            "compute_precision batch_size throughput item latency_ms time_to_train_s document_id published_on",
        ),
    ),
    View(
        "local_runs",
        "Points of local sweeps, measured and emulated, with what must agree before two of them are compared.",
        (
            *_of("runs", "run_id"),
            *_of("results", "result_id origin"),
            *_of("runs", "backend device started_at"),
            *_of("results", "model platform chip chip_count sdk_version framework"),
            *_of("run_points", "backend_version provider"),
            *_of("results", "compute_precision"),
            *_of("run_points", "model_precision weights sessions threads pipeline preprocessing"),
            *_of("results", "batch_size micro_batch_size throughput item latency_ms latency_ms_low latency_ms_high"),
            *_of("results", "interval_confidence latency_kind latency_isolated_ms latency_p90_ms latency_p99_ms"),
            *_of("results", "power_w power_scope efficiency"),
            *_of("run_points", "cosine top1"),
            *_of("results", "suspect calibration_id"),
        ),
    ),
    View(
        "mlperf_comparable",
        "Scored MLPerf Training entries, official ones alone. Minutes may be compared only between rows that share "
        "benchmark, comparable_rounds and division; availability and accelerators are shown because they differ.",
        (
            *_of("mlperf_entries", "benchmark comparable_rounds division availability round submitter system"),
            *_of("mlperf_entries", "accelerator accelerators framework minutes scaling_factor run_minutes_min"),
            *_of("mlperf_entries", "run_minutes_max run_minutes_cv n_runs n_success global_batch_size"),
            *_of("mlperf_entries", "epochs_to_converge samples_to_converge mlperf_id mlperf_id_confidence path"),
            "mlperf_entries.attribution",
        ),
    ),
    View(
        "mlperf_per_chip",
        "The same entries with the accelerator minutes that each took: minutes times accelerators, a derived figure "
        "that is no MLPerf metric and that larger systems do worse on because no work scales freely.",
        (
            *_of("mlperf_entries", "benchmark comparable_rounds division availability round submitter system"),
            *_of("mlperf_entries", "accelerator accelerators framework minutes"),
            double("accelerator_minutes", "Minutes times accelerators.", unit="min"),
            *_of("mlperf_entries", "mlperf_id mlperf_id_confidence path attribution"),
        ),
    ),
    View(
        "provenance",
        "Where each figure was printed: one row per figure of a result, with its raw text, unit, conversion and place.",
        (
            *_of("results", "result_id model platform"),
            *_of("cells", "column_name header raw_text value unit factor"),
            *_of("documents", "document_id title url"),
            *_of("cells", "locator"),
            *_of("documents", "sha256 file"),
        ),
    ),
)


def view_rows(view: View) -> list[dict[str, str | None]]:
    """The view's lines in `columns`, the first one for the view itself."""
    return described_rows(view.name, "view", view.description, view.described)


def sql_view(view: View) -> list[str]:
    """DuckDB statements that create the view with its comments."""
    comments = [
        f"COMMENT ON COLUMN {view.name}.{column.name} IS {quoted(column.description)}" for column in view.described
    ]
    created = f"CREATE VIEW {view.name} AS {view.sql}"
    return [created, f"COMMENT ON VIEW {view.name} IS {quoted(view.description)}", *comments]
