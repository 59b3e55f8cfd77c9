"""README.md of a release: the dataset card, with counts of its own tables."""

from __future__ import annotations

from collections.abc import Iterator

from ipu_results.check.rules import RULES
from ipu_results._util.markdown import format_code, format_markdown_table, escape_markdown
from ipu_results.release.facts import Facts

HEAD = """# ipu-results {version}

The open, verified record of Graphcore IPU performance: {results:,} results of {documents:,} source documents, each
figure with the place where it was printed. Published on {published_on}, build `{build_id}`.

## What it is

{contents}
By the origin of the result:

{origins}
Columns, units and keys: [DICTIONARY.md](DICTIONARY.md), and the table `columns` in every format.

## How it was collected

Documents were transcribed or captured into files with a checksum, read by deterministic code, normalised to one
vocabulary, and checked row by row. No printed figure was changed, rounded or filled in: what looks wrong carries a row
in `flags` with the evidence. `cells` holds each figure as printed with its place; `source_rows` proves that no row was
lost:

{source_rows}
Official MLPerf entries are scored from the logs by the official rule. Measured and emulated rows are this project's own
(`origin`); an emulated figure is the output of a model and no measurement.

## What it must not be used for

- Comparing MLPerf results with other figures, or across the groups of the view `mlperf_comparable`. Figures derived
  here from MLPerf logs were not verified by MLCommons; cite them as the column `attribution` says.
- Reading published figures as independent measurements. Vendors printed them of their own machines, with their own
  settings, and most were never repeated by anybody else.
- Ranking by throughput alone: batch, latency, precision, chip count and SDK stand beside it because they decide it.
- Treating emulated rows as measured ones, or `suspect` rows as sound.
- Buying decisions about current hardware: the record ends with what was published, and prices are list prices of their
  day.

## Known problems

Flags are findings, never repairs. `error` is sure, `warn` likely, `info` worth knowing.

{flags}
Quarantine: {quarantine}

Quantitative claims of vendors, computed again from this dataset (`claims`, `recomputations`, `contradictions`):

{verdicts}
{formulas}
"""
TAIL = """
## How to load it

| with | |
|---|---|
| DuckDB | `ATTACH 'ipu_results.duckdb' AS ipu (READ_ONLY); FROM ipu.inference LIMIT 5;` (DuckDB 1.2.2 or newer) |
| DuckDB, a URL | `SELECT * FROM read_parquet('https://HOST/PATH/results.parquet');` |
| pandas | `pd.read_parquet("results.parquet")` |
| polars | `pl.read_parquet("results.parquet")` |
| pyarrow | `pq.read_table("results.parquet")` (units and descriptions in the field metadata) |
| R | `arrow::read_parquet("results.parquet")` |
| Excel | Data, From Text/CSV, `results.csv`, origin 65001 (UTF-8) |
| Frictionless | `datapackage.json` |
| Croissant | `mlcroissant.Dataset("croissant.json")` |

In CSV an empty cell is a null and `""` an empty text; figures are not rounded, days are ISO 8601.

## Check it

`sha256sum -c SHA256SUMS` checks the bytes; `ipu-results verify DIR` checks those and that Parquet, CSV and DuckDB hold
the rows that `release.json` promises.

## How to cite

Cite this dataset (`CITATION.cff`) with its version, and the source that the figure came from:

> The ipu-results authors. ipu-results: the open, verified record of Graphcore IPU performance, version {version},
> {published_on}. CC-BY-4.0.
"""


def page(facts: Facts) -> str:
    head = HEAD.format(
        version=facts.version,
        published_on=facts.published_on,
        build_id=facts.build_id[:12],
        results=facts.results,
        documents=facts.found["documents"][0][0],
        contents=_contents(facts),
        origins=format_markdown_table(("origin", "task", "results"), facts.found["origins"]),
        source_rows=format_markdown_table(("source rows", "count"), facts.found["source_rows"]),
        flags=_flags(facts),
        quarantine=_quarantine(facts),
        verdicts=format_markdown_table(("verdict", "claims"), facts.found["verdicts"]),
        formulas=_formulas(facts),
    )
    return "\n".join([head.rstrip("\n") + "\n", *_corrections(facts), *_licences(facts)]) + TAIL.format(
        version=facts.version, published_on=facts.published_on
    )


def _contents(facts: Facts) -> str:
    told = {row[0]: row[4] for row in facts.found["columns"] if not row[1]}
    return format_markdown_table(
        ("table", "rows", "one row is"),
        ((format_code(name), counted["rows"], told.get(name, "")) for name, counted in facts.tables.items()),
    )


def _flags(facts: Facts) -> str:
    titles = {rule.id: rule.title for rule in RULES}
    rows = ((rule, titles.get(rule, ""), *counts) for rule, *counts in facts.found["flags"])
    return format_markdown_table(("rule", "what it finds", "severity", "flags", "results"), rows)


def _quarantine(facts: Facts) -> str:
    if rows := facts.found["quarantine"]:
        return f"{sum(count for _, count in rows)} rows were not accepted.\n\n" + format_markdown_table(("reason", "rows"), rows)
    return "no source row was refused."


def _formulas(facts: Facts) -> str:
    if not facts.formulas:
        return "No text begins with `=`, `+`, `-` or `@`, so that no spreadsheet takes one for a formula."
    return (
        f"{facts.formulas:,} texts begin with `=`, `+`, `-` or `@` and stand in the CSV files as they are: a spread"
        "sheet may take one for a formula, so import the columns as text."
    )


def _corrections(facts: Facts) -> Iterator[str]:
    if facts.applied:
        yield "## Rows that are gone since the previous release\n"
        rows = (
            (
                format_code(one.correction.table),
                ", ".join(f"{name} = {value}" for name, value in one.correction.key.items()) or "the whole table",
                one.rows,
                one.correction.reason,
            )
            for one in facts.applied
        )
        yield format_markdown_table(("table", "key", "rows", "reason"), rows)


def _licences(facts: Facts) -> Iterator[str]:
    yield "## Licence\n"
    yield (
        "Selection, arrangement, annotation and normalisation: CC-BY-4.0 (`LICENSE`). Single figures are facts of the "
        "sources below; the column `licence` of `documents` says what is known of each.\n"
    )
    by_licence: dict[str, list[str]] = {}
    for document_id, _, publisher, licence, _ in facts.found["licences"]:
        by_licence.setdefault(licence, []).append(f"{document_id} ({publisher})")
    yield "".join(f"- {escape_markdown(licence)}: {escape_markdown('; '.join(names))}.\n" for licence, names in by_licence.items())
