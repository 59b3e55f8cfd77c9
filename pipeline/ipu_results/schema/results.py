"""The columns of `results`."""

from __future__ import annotations

from ipu_results.schema.columns import Table, date, double, integer, text
from ipu_results.schema.configurations import BASES

POSITIVE = {"low": 1}

RESULTS = Table(
    "results",
    "One result: a published table row, an official MLPerf entry, a measured or an emulated batch point.",
    (
        text(
            "result_id",
            "Stable key, derived from what the row is, not from where it stands.",
            required=True,
            pattern=r"[0-9a-f]{16}",
        ),
        text(
            "origin",
            "How the figures came to be.",
            required=True,
            choices=("published", "official", "measured", "emulated"),
        ),
        text("publisher", "Who published the figures.", required=True),
        text("document_id", "Document that they stand in.", references="documents.document_id"),
        text("table_name", "Table that they stand in."),
        integer("row_number", "Position within the table as printed, from 1.", **POSITIVE),
        date("published_on", "Day of publication."),
        text("run_id", "Local run that made the row; null for published rows.", references="runs.run_id"),
        text("task", "What was measured.", required=True, choices=("training", "inference")),
        text("benchmark", "Benchmark suite, where the row is an entry of one.", choices=("mlperf-training", "ogb-lsc")),
        text("division", "Division of the benchmark.", choices=("closed", "open")),
        text("mlperf_id", "MLPerf result id.", pattern=r"\d+\.\d+-\d+"),
        text("mlperf_round", "MLPerf round.", pattern=r"\d+\.\d+"),
        text("model", "Canonical name of the network.", required=True, references="models.model"),
        text("variant", "Variant as printed; null where the cell is blank."),
        text("dataset", "Dataset as printed; null where the cell is blank."),
        text("platform", "Canonical name of the machine.", required=True, references="platforms.platform"),
        text("chip", "Processor of the machine."),
        integer("chip_count", "Processors that took part.", **POSITIVE),
        text("sdk_version", "Version of the vendor's software."),
        text("framework", "Canonical name of the framework."),
        text("compiler", "Graph compiler that the source names beside the framework."),
        text("precision", "Precision X.Y: X for activations and gradients, Y for weights.", pattern=r"\d+\.\d+"),
        integer("activation_bits", "Bits of activations and gradients: the X of X.Y.", unit="bit", low=1, high=64),
        integer("weight_bits", "Bits of weights: the Y of X.Y.", unit="bit", low=1, high=64),
        text("compute_precision", "What the source or the compiled model says otherwise of precision."),
        integer("batch_size", "Items per batch over the whole machine, as printed.", unit="item", **POSITIVE),
        integer(
            "micro_batch_size",
            "Items per batch and processor, or per replica where one spans several, where a source gives it.",
            unit="item",
            **POSITIVE,
        ),
        double("throughput", "Items per second.", unit="item/s", above=0),
        text("item", "What one item is; null where no source says."),
        double("latency_ms", "Time per batch as printed; `latency_basis` may say otherwise.", unit="ms", above=0),
        double("latency_ms_low", "Lower end of a measured interval or an emulated band.", unit="ms"),
        double("latency_ms_high", "Upper end of a measured interval or an emulated band.", unit="ms"),
        double(
            "interval_confidence",
            "Nominal coverage of a measured interval, taken over the rounds of a run; null for a band.",
            above=0,
            high=1,
        ),
        double(
            "latency_isolated_ms",
            "Median time of a batch with nothing else in flight, from reading its images to its outputs.",
            unit="ms",
            above=0,
        ),
        double(
            "latency_p90_ms",
            "90th percentile of the times of such batches, by LoadGen's early-stopping estimate; null for too few.",
            unit="ms",
            above=0,
        ),
        double("latency_p99_ms", "99th percentile, likewise.", unit="ms", above=0),
        text(
            "latency_basis",
            "What the public configuration of a published row times: one batch, the same with several in flight, or a "
            "batch over its items; null where no source says.",
            choices=BASES,
        ),
        text("latency_kind", "How a measured or emulated latency was taken.", choices=("amortised", "isolated")),
        text("suspect", "Why a measured row is doubtful."),
        text("calibration_id", "Calibration that an emulated row rests on."),
        text("power_scope", "What the power covers.", choices=("device", "board", "package", "wall", "declared")),
        double("efficiency", "Items per second per watt.", unit="item/s/W", above=0),
        double("power_w", "Power drawn.", unit="W", above=0),
        double("time_to_train_s", "Time until the model was trained.", unit="s", above=0),
        double("time_to_result_s", "Time until the result was there.", unit="s", above=0),
        text("quality_metric", "Name of the quality metric."),
        double("quality_value", "Quality that was reached."),
        text("quality_target", "Quality that had to be reached, as printed."),
        text("ranking", "Rank in the benchmark's own list, as printed."),
    ),
    key=("result_id",),
)

FIGURES = ("throughput", "latency_ms", "efficiency", "power_w", "time_to_train_s", "time_to_result_s", "quality_value")
