"""The views and macros of a build: first questions here, analyses beside."""

from __future__ import annotations

from ipu_results.schema.analyses import ANALYSES
from ipu_results.schema.columns import double
from ipu_results.schema.results import RESULTS
from ipu_results.schema.view import ERRORS, IN_FLIGHT, NETWORK, WARNINGS, View, of

FIRST: tuple[View, ...] = (
    View(
        "flagged",
        "Every result with what its flags say: the network that ran, errors and warnings; and batches in flight.",
        (*of("results", " ".join(RESULTS.names)), NETWORK, ERRORS, WARNINGS, IN_FLIGHT),
    ),
    View(
        "inference",
        "Inference results of every origin, with the number of error and warning flags on each.",
        (
            *of("results", "result_id origin publisher model variant platform chip chip_count sdk_version framework"),
            *of("results", "precision compute_precision batch_size throughput item latency_ms latency_basis"),
            *of("results", "latency_kind efficiency run_id suspect"),
            ERRORS,
            WARNINGS,
            *of("results", "document_id table_name row_number published_on"),
        ),
    ),
    View(
        "training",
        "Training results other than MLPerf entries, which compare with nothing else and stand in `results`.",
        (
            *of("results", "result_id origin publisher model variant dataset platform chip chip_count sdk_version"),
            *of("results", "framework precision compute_precision batch_size throughput item time_to_train_s"),
            *of("results", "quality_metric quality_value"),
            ERRORS,
            WARNINGS,
            *of("results", "document_id table_name row_number published_on"),
        ),
    ),
    View(
        "latest",
        "For each publisher and configuration the newest published result: older page versions are left out where a "
        "newer one has the row. The batch is part of a configuration in inference and not in training.",
        of(
            "results",
            "result_id publisher task model variant dataset platform chip_count sdk_version framework precision "
            "compute_precision batch_size throughput item latency_ms time_to_train_s document_id published_on",
        ),
    ),
    View(
        "local_runs",
        "Points of local sweeps, measured and emulated, with what must agree before two of them are compared.",
        (
            *of("runs", "run_id"),
            *of("results", "result_id origin"),
            *of("runs", "backend device started_at"),
            *of("results", "model platform chip chip_count sdk_version framework"),
            *of("run_points", "backend_version provider"),
            *of("results", "compute_precision"),
            *of("run_points", "model_precision weights sessions threads pipeline preprocessing"),
            *of("results", "batch_size micro_batch_size throughput item latency_ms latency_ms_low latency_ms_high"),
            *of("results", "interval_confidence latency_kind latency_isolated_ms latency_p90_ms latency_p99_ms"),
            *of("results", "power_w power_scope efficiency"),
            *of("run_points", "cosine top1"),
            *of("results", "suspect calibration_id"),
        ),
    ),
    View(
        "mlperf_comparable",
        "Scored MLPerf Training entries, official ones alone. Minutes may be compared only between rows that share "
        "benchmark, comparable_rounds and division; availability and accelerators are shown because they differ.",
        (
            *of("mlperf_entries", "benchmark comparable_rounds division availability round submitter system"),
            *of("mlperf_entries", "accelerator accelerators framework minutes scaling_factor run_minutes_min"),
            *of("mlperf_entries", "run_minutes_max run_minutes_cv n_runs n_success global_batch_size"),
            *of("mlperf_entries", "epochs_to_converge samples_to_converge mlperf_id mlperf_id_confidence path"),
            "mlperf_entries.attribution",
        ),
    ),
    View(
        "mlperf_per_chip",
        "The same entries with the accelerator minutes that each took: minutes times accelerators, a derived figure "
        "that is no MLPerf metric and that larger systems do worse on because no work scales freely.",
        (
            *of("mlperf_entries", "benchmark comparable_rounds division availability round submitter system"),
            *of("mlperf_entries", "accelerator accelerators framework minutes"),
            double("accelerator_minutes", "Minutes times accelerators.", unit="min"),
            *of("mlperf_entries", "mlperf_id mlperf_id_confidence path attribution"),
        ),
    ),
    View(
        "provenance",
        "Where each figure was printed: one row per figure of a result, with its raw text, unit, conversion and place.",
        (
            *of("results", "result_id model platform"),
            *of("cells", "column_name header raw_text value unit factor"),
            *of("documents", "document_id title url"),
            *of("cells", "locator"),
            *of("documents", "sha256 file"),
        ),
    ),
)
VIEWS: tuple[View, ...] = (*FIRST, *ANALYSES)
