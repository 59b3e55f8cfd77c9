"""The table of the public configurations behind published rows."""

from __future__ import annotations

from ipu_results.schema.columns import Table, boolean, integer, text

NEAR = ("exact", "likely")
MATCHES = (*NEAR, "weak")
BASES = ("per-batch", "several-in-flight", "per-item")
COUNT = {"low": 1}

CONFIGURATIONS = Table(
    "configurations",
    "The public configuration behind one published row: the command that made its figures, or that none is known. "
    "Curated: no page names its commands.",
    (
        text(
            "result_id",
            "The row's result; null where the row was quarantined.",
            references="results.result_id",
        ),
        text("result_document", "Document of the row.", required=True, references="documents.document_id"),
        text("result_table", "Its table.", required=True),
        integer("result_row", "Its position within the table as printed, from 1.", required=True, **COUNT),
        text("repository", "Repository of the configuration; null where none is known.", pattern=r"[\w.-]+/[\w.-]+"),
        text("tag", "Release of the repository.", pattern=r"v\d+\.\d+\.\d+"),
        text("path", "File within the repository."),
        text("benchmark", "Benchmark or configuration in that file, or the heading of its command."),
        integer("micro_batch_size", "Items that one replica takes at once.", unit="item", **COUNT),
        integer("replicas", "Copies of the model that work on one batch.", **COUNT),
        integer("gradient_accumulation", "Micro-batches of a replica per weight update.", **COUNT),
        integer("instances", "Processes of the host.", **COUNT),
        integer(
            "global_batch_from_config",
            "Micro-batch times replicas times accumulation, each where it is known.",
            unit="item",
            **COUNT,
        ),
        boolean("batch_agrees", "Whether that is the printed batch; null where either is not known."),
        text("data_fed", "Data that the command feeds."),
        boolean("dataset_agrees", "Whether that is the printed dataset; null where either is not known."),
        text("precision_flags", "What the configuration sets of precision."),
        text("latency_definition", "How the script computes the latency that it reports."),
        text("latency_basis", "The same in one word, as in `results`.", choices=BASES),
        text(
            "match_confidence",
            "exact: the configuration of the row's release that fits it; likely: it differs in one point, which the "
            "note tells; weak: the nearest one.",
            choices=MATCHES,
        ),
        text("note", "What else is known of the match."),
        text("document_id", "Document that the pair stands in.", required=True, references="documents.document_id"),
    ),
    key=("result_document", "result_table", "result_row"),
)
