"""The tables of local runs. What a point shares with published rows stands in `results` alone."""

from __future__ import annotations

from ipu_results.schema.columns import Table, double, integer, text, timestamp

RUN_ID = r"[0-9]{8}-[0-9]{6}-[a-z0-9-]+"
SHARE = {"low": 0, "high": 1}
ROUNDED_ABOVE_ONE = 1 + 1e-6

RUNS = Table(
    "runs",
    "One local sweep: what ran, on what, and as it was asked for.",
    (
        text("run_id", "Name of the run, the UTC time of its start first.", required=True, pattern=RUN_ID),
        text("backend", "Backend that ran it.", required=True),
        text("device", "Device of the backend, by the name under which it is asked for.", required=True),
        timestamp("started_at", "Start of the sweep, UTC.", required=True),
        timestamp("finished_at", "End of the sweep, UTC.", required=True),
        text("command_line", "Command line that started it.", required=True),
        text("environment", "The machine and its software: a JSON object, keys sorted.", required=True),
        text("versions", "Versions of the packages: a JSON object of name to version, keys sorted.", required=True),
        text("setup", "Settings of the backend and its sessions: a JSON object, keys sorted.", required=True),
        text("plan", "Rounds, blocks and their order: a JSON object, keys sorted.", required=True),
        text("model", "The network file: a JSON object, keys sorted.", required=True),
        text("images", "The images: a JSON object, keys sorted.", required=True),
        text("notes", "Remarks of the runner: a JSON list of text.", required=True),
        text(
            "origin",
            "How the figures of its points came to be; null where no point was accepted.",
            choices=("measured", "emulated"),
        ),
        text("document_id", "Document that the run stands in.", required=True, references="documents.document_id"),
    ),
    key=("run_id",),
)

RUN_POINTS = Table(
    "run_points",
    "One batch size of a local sweep: how the point was taken. Its figures stand in `results`.",
    (
        text("run_id", "Run that made it.", required=True, references="runs.run_id"),
        integer("batch_size", "Items per batch over all sessions.", unit="item", required=True, low=1),
        text("result_id", "The point's row in `results`.", required=True, references="results.result_id"),
        integer("sessions", "Sessions that ran at once.", low=1),
        integer("rounds", "Rounds that visited the point."),
        integer("blocks", "Blocks that were measured."),
        integer("iterations", "Batches in those blocks."),
        integer("disturbed_blocks", "Blocks in which something else was at work."),
        text("power_reason", "Why there is no power."),
        text("backend", "Backend that ran it.", required=True),
        text("backend_version", "Version of the backend."),
        text("provider", "Execution provider within the backend."),
        text("device", "Device of the backend.", required=True),
        integer("threads", "Threads of the host in each session.", low=1),
        text("pipeline", "Whether images are made ready while others compute.", choices=("serial", "overlap")),
        text("preprocessing", "What was done to an image before the network."),
        text("model_precision", "Precision of the network file; what was computed stands in `results`."),
        text("weights", "Weights of the network: the seed they were drawn with, or a digest."),
        text("model_sha256", "Digest of the network file.", pattern=r"[0-9a-f]{64}"),
        double(
            "cosine",
            "Least cosine between an image's outputs and those of the fp32 reference.",
            low=-ROUNDED_ABOVE_ONE,
            high=ROUNDED_ABOVE_ONE,
        ),
        double("top1", "Share of images whose most likely class is the fp32 reference's.", **SHARE),
        double("load_s", "Time to load the network.", unit="s"),
        double("compile_s", "Time to compile it.", unit="s"),
        double("first_run_ms", "Time of the first batch.", unit="ms"),
        integer("warm_up_runs", "Batches before the first that was measured."),
        double(
            "preprocess_ms",
            "Median time per batch to make images ready, or to wait for them where that overlaps.",
            unit="ms",
        ),
        double("infer_ms", "Median time per batch in the network.", unit="ms"),
        double("retrieve_ms", "Median time per batch to fetch the outputs.", unit="ms"),
        double("probe_ms", "Median time of the probe around the blocks.", unit="ms"),
        double("foreign_cpu", "Largest share over the blocks of the CPU that other programs took.", **SHARE),
        double("steal", "Largest share over the blocks of the CPU that the hypervisor took.", **SHARE),
        text("document_id", "Document that it stands in.", required=True, references="documents.document_id"),
    ),
    key=("run_id", "batch_size"),
)
