"""The tables of official MLPerf Training results."""

from __future__ import annotations

from ipu_results.schema.columns import Table, boolean, double, integer, text

ROUND = r"\d+\.\d+"
ID = r"\d+\.\d+-\d+"
SHA256 = r"[0-9a-f]{64}"
CONFIDENCES = ("printed", "confirmed", "inferred")
DOCUMENT = text("document_id", "Document that the row stands in.", required=True, references="documents.document_id")

MLPERF_ENTRIES = Table(
    "mlperf_entries",
    "One entry of an official MLPerf Training round with its score, recomputed from the logs by the official rule.",
    (
        text("round", "MLPerf round.", required=True, pattern=ROUND),
        text("submitter", "Submitter, as its folder is named.", required=True),
        text("division", "Division of the benchmark.", choices=("closed", "open")),
        text("system", "System name as the submitter gives it."),
        text("benchmark", "Benchmark, as its folder is named.", required=True),
        integer("accelerators", "Accelerators in the system: those of a node times the nodes."),
        text("accelerator", "Accelerator as the submitter names it."),
        text("framework", "Software as the submitter names it."),
        integer("n_runs", "Logs in the entry's folder.", required=True),
        integer("n_success", "Runs that count for the score.", required=True),
        double(
            "minutes",
            "Score: mean of the counted runs without the fastest and slowest, times the scaling factor, unrounded; "
            "null where too many runs do not count.",
            unit="min",
            above=0,
        ),
        text("path", "Folder of the entry within the round's repository.", required=True),
        text("no_score_reason", "Why there is no score."),
        text("availability", "Availability class.", choices=("onprem", "cloud", "preview", "research")),
        text("status", "Availability as the submitter spells it."),
        integer("nodes", "Nodes of the system."),
        double("scaling_factor", "Factor of the entry's scaling.json, 1 where there is none.", above=0),
        double("run_minutes_min", "Fastest counted run, unscaled.", unit="min"),
        double("run_minutes_max", "Slowest counted run, unscaled.", unit="min"),
        double("run_minutes_cv", "Standard deviation of the counted runs (n - 1) over their mean."),
        integer("global_batch_size", "Global batch size; null where the runs differ or do not say.", unit="item"),
        double("epochs_to_converge", "Epochs at convergence as logged, averaged as the minutes are.", unit="epoch"),
        double(
            "samples_to_converge",
            "Samples at convergence, averaged as the minutes are: as logged, or epochs times the logged train_samples "
            "where that is the size of an epoch; null elsewhere.",
            unit="sample",
        ),
        text("system_path", "The system's description within the round's repository.", required=True),
        text("system_sha256", "Digest of that file; null where it is missing.", pattern=SHA256),
        text("scaling_sha256", "Digest of the entry's scaling.json; null where there is none.", pattern=SHA256),
        text("attribution", "How a figure of this entry must be cited.", required=True),
        DOCUMENT,
        text("result_id", "The entry's row in `results`; null without a score.", references="results.result_id"),
        text("mlperf_id", "MLPerf result id, from `mlperf_ids`; null where none is known.", pattern=ID),
        text("mlperf_id_confidence", "How sure the id is.", choices=CONFIDENCES),
        text("comparable_rounds", "Rounds whose results of this benchmark may be compared with it, within a division."),
    ),
    key=("round", "path"),
)

MLPERF_RUNS = Table(
    "mlperf_runs",
    "One log file of an official MLPerf Training entry.",
    (
        text("round", "MLPerf round.", required=True, pattern=ROUND),
        text("path", "Folder of the entry within the round's repository.", required=True),
        text("file", "Log file within that folder.", required=True),
        double("minutes", "From the last run_start before the first run_stop to that run_stop, unscaled.", unit="min"),
        text("status", "Status of the run_stop, as logged."),
        boolean("counted", "Whether the run counts for the score.", required=True),
        text("reason", "Why it does not count."),
        double("init_minutes", "From the first init_start to init_stop.", unit="min"),
        integer("global_batch_size", "Global batch size, as logged.", unit="item"),
        double("epochs", "Epochs at the last evaluation of the run, as logged.", unit="epoch"),
        double("samples", "Samples at that evaluation; see `mlperf_entries.samples_to_converge`.", unit="sample"),
        integer("lines", "Log lines that were decoded.", required=True),
        text("sha256", "Digest of the log file.", pattern=SHA256),
        DOCUMENT,
    ),
    key=("round", "path", "file"),
)

MLPERF_IDS = Table(
    "mlperf_ids",
    "One MLPerf result id and the official system that bears it. Curated: no official file holds an id.",
    (
        text("mlperf_id", "MLPerf result id.", required=True, pattern=ID),
        text("round", "MLPerf round.", required=True, pattern=ROUND),
        text("system_path", "Folder of the system's entries within the round's repository.", required=True),
        text(
            "confidence",
            "printed: a source pairs the id with the system; confirmed: only one system fits; inferred: from an order.",
            required=True,
            choices=CONFIDENCES,
        ),
        text("source", "Where the pair comes from.", required=True),
        DOCUMENT,
    ),
    key=("mlperf_id",),
)

MLPERF_COMPARABILITY = Table(
    "mlperf_comparability",
    "Rounds between which MLPerf Training results of one benchmark may be compared, within a division; all other "
    "rounds stand alone.",
    (
        text("benchmark", "Benchmark.", required=True),
        text("first_round", "First round of the block.", required=True, pattern=ROUND),
        text("last_round", "Last round of the block.", required=True, pattern=ROUND),
        text("source", "Where this is ruled.", required=True),
    ),
    key=("benchmark", "first_round"),
)
