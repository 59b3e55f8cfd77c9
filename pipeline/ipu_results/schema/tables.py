"""Every published table, column by column. Names listed in the contract are fixed; the rest may grow."""

from __future__ import annotations

from ipu_results.schema.claims import CLAIMS, CONTRADICTIONS, RECOMPUTATIONS
from ipu_results.schema.columns import Table, date, double, integer, text
from ipu_results.schema.configurations import CONFIGURATIONS
from ipu_results.schema.mlperf import MLPERF_COMPARABILITY, MLPERF_ENTRIES, MLPERF_IDS, MLPERF_RUNS
from ipu_results.schema.results import RESULTS
from ipu_results.schema.runs import RUN_POINTS, RUNS

DOCUMENTS = Table(
    "documents",
    "One source document, or one captured version of it.",
    (
        text(
            "document_id", "Name of the document, stable across builds.", required=True, pattern=r"[a-z0-9][a-z0-9.@-]*"
        ),
        text("title", "Title as published.", required=True),
        text("publisher", "Who published it.", required=True),
        text("url", "Where it was published; null for a local run.", pattern=r"https?://\S+"),
        date("published_on", "Day of publication; null where only a vaguer date is known."),
        text(
            "kind",
            "What the file in raw/ is: our transcription of its facts, figures that we derived from it or curated, a "
            "capture of the document itself, a pointer, or a record of a local run.",
            required=True,
            choices=("transcription", "derived", "curated", "capture", "pointer", "run"),
        ),
        text("sha256", "Digest of the file in raw/.", required=True, pattern=r"[0-9a-f]{64}"),
        text("licence", "Licence of the source, as far as it is known.", required=True),
        date("retrieved_on", "Day on which the facts were taken from the source."),
        text("file", "Path of the file within raw/.", required=True),
        text("note", "What the file is and what it leaves out.", required=True),
    ),
    key=("document_id",),
)

CELLS = Table(
    "cells",
    "One cell of an accepted source row, text and blank ones too: where each figure of a result stands in its source.",
    (
        text("result_id", "The result that the cell belongs to.", required=True, references="results.result_id"),
        integer("cell_number", "Position of the cell among those of its result, from 1.", required=True, low=1),
        text(
            "column_name",
            "Column of `results` that the cell fills, or its own name where it fills none.",
            required=True,
        ),
        text("header", "Column header as printed in the source.", required=True),
        text("raw_text", "The cell as printed; empty where it is blank.", required=True),
        double("value", "The figure as printed, in `unit`; null for text and blank cells.", low=-1e15),
        text("unit", "Unit of `value` as printed."),
        double("factor", "`value` times this is the figure in `results`; null where the cell holds no figure."),
        text("marks", "Footnote marks that were lifted off the cell."),
        text("document_id", "Document that it stands in.", required=True, references="documents.document_id"),
        text("locator", "Where in the document: table, row and column, page and box, or line.", required=True),
    ),
    key=("result_id", "cell_number"),
)

SOURCE_ROWS = Table(
    "source_rows",
    "One row of a source table and what became of it: the proof that no row was lost.",
    (
        text("document_id", "Document that it stands in.", required=True, references="documents.document_id"),
        text("table_name", "Table that it stands in.", required=True),
        integer("row_number", "Position within the table as printed, from 1.", required=True, low=1),
        text("locator", "Where in the document.", required=True),
        text("status", "What became of it.", required=True, choices=("accepted", "quarantined", "duplicate")),
        text(
            "result_id",
            "The result that cites it, or that it repeats; null for rows that are published in a table of their own.",
            references="results.result_id",
        ),
    ),
    key=("document_id", "table_name", "row_number"),
)

QUARANTINE = Table(
    "quarantine",
    "One source row that was not accepted, and why.",
    (
        text("document_id", "Document that it stands in.", required=True, references="documents.document_id"),
        text("table_name", "Table that it stands in.", required=True),
        integer("row_number", "Position within the table as printed, from 1.", required=True, low=1),
        text("locator", "Where in the document.", required=True),
        text("reason", "Stable reason code.", required=True, pattern=r"[a-z]+(-[a-z]+)*"),
        text("message", "What is wrong, naming the word and the cell.", required=True),
        text(
            "raw",
            "The row as printed: a JSON object of header to text, or a list where the headers do not fit.",
            required=True,
        ),
    ),
    key=("document_id", "table_name", "row_number", "reason"),
)

FLAGS = Table(
    "flags",
    "One quality finding. A flag never changes a figure.",
    (
        text("rule", "Bare id of the quality rule.", required=True, pattern=r"R\d\d"),
        text("severity", "How sure the evidence is.", required=True, choices=("error", "warn", "info")),
        text("result_id", "The result that it speaks of.", required=True, references="results.result_id"),
        text("column_name", "The column of `results` that it speaks of.", required=True),
        text("message", "The evidence.", required=True),
        text("suggested", "What the cell would be if the evidence is right; never applied."),
    ),
    key=("rule", "result_id", "column_name"),
)

PLATFORMS = Table(
    "platforms",
    "A machine that results speak of.",
    (
        text("platform", "Canonical name.", required=True),
        text("family", "Generation: Mk1, Classic or Bow for IPU machines, else the vendor's name."),
        text("chip", "Processor."),
        integer("chip_count", "Processors in the machine.", low=1),
        double("clock_ghz", "Clock of the processor.", unit="GHz"),
        integer("tiles_per_chip", "Tiles (cores) of one processor.", low=1),
        double("sram_per_chip_mib", "Memory on one processor.", unit="MiB"),
        double("peak_fp16_tflops", "Peak of one processor at 16 bits, dense.", unit="TFLOP/s", above=0),
        double("peak_fp32_tflops", "Peak of one processor at 32 bits.", unit="TFLOP/s", above=0),
        double("peak_tf32_tflops", "Peak of one processor in TF32, dense.", unit="TFLOP/s", above=0),
        double("peak_int8_tops", "Peak of one processor at 8 bits, dense.", unit="TOP/s", above=0),
        text("peak_source", "Where the peaks come from."),
        double("rated_power_w", "Power that the machine is rated for.", unit="W", above=0),
        text("power_source", "Where that comes from."),
        double("list_price_usd", "List price as published.", unit="USD"),
        text("price_source", "Where that comes from; not always from the maker."),
        text("source", "Where the other facts come from."),
    ),
    key=("platform",),
)

MODELS = Table(
    "models",
    "A network that results speak of.",
    (
        text("model", "Canonical name.", required=True),
        text("item", "What one item of its throughput is; null where no source says."),
        text("item_note", "What is known of the item where no source names it."),
        integer("parameters", "Trained parameters."),
        double("gmacs_per_item", "Multiply-accumulates of one inference; `source` tells for which input.", unit="GMAC"),
        text("source", "Where these facts come from."),
    ),
    key=("model",),
)

CAPTURE_DIFFERENCES = Table(
    "capture_differences",
    "One cell in which a captured version of a document differs from our transcription of it.",
    (
        text("document_id", "The transcription.", required=True, references="documents.document_id"),
        text("capture_id", "The capture.", required=True, references="documents.document_id"),
        integer("number", "Position of the difference in the comparison, from 1.", required=True, low=1),
        text("table_name", "Table that it stands in; null where the capture as a whole could not be read."),
        text("kind", "What differs.", required=True, choices=("cell", "row", "table", "unreadable")),
        text("locator", "Where in the transcription, or in the capture where only that has it.", required=True),
        text("transcribed", "Text in the transcription; null where it has none."),
        text("captured", "Text in the capture; null where it has none."),
    ),
    key=("document_id", "capture_id", "number"),
)

COLUMNS = Table(
    "columns",
    "The data dictionary: every column of every table and view.",
    (
        text("table_name", "Table or view.", required=True),
        text("column_name", "Column; empty for the line that describes the table itself.", required=True),
        text("type", "SQL type, or `table` or `view`.", required=True),
        text("unit", "Unit of the figures."),
        text("description", "What it holds.", required=True),
    ),
    key=("table_name", "column_name"),
)

BUILD = Table(
    "build",
    "One published table of this build, with the digest of its rows.",
    (
        text("table_name", "Table.", required=True),
        integer("row_count", "Rows in it.", required=True),
        text("rows_sha256", "Digest of the sorted rows, the same in Parquet and in DuckDB.", required=True),
        text("build_id", "Digest of what the build was made from and of what it holds.", required=True),
    ),
    key=("table_name",),
)

TABLES: tuple[Table, ...] = (
    DOCUMENTS,
    RUNS,
    PLATFORMS,
    MODELS,
    RESULTS,
    RUN_POINTS,
    CONFIGURATIONS,
    MLPERF_ENTRIES,
    MLPERF_RUNS,
    MLPERF_IDS,
    MLPERF_COMPARABILITY,
    CELLS,
    SOURCE_ROWS,
    QUARANTINE,
    FLAGS,
    CLAIMS,
    RECOMPUTATIONS,
    CONTRADICTIONS,
    CAPTURE_DIFFERENCES,
    COLUMNS,
    BUILD,
)


def table(name: str) -> Table:
    return next(table for table in TABLES if table.name == name)
