"""The data of the views, encoded so that a page opened from disk can load and filter them quickly.

They are results with figures, flags and search names, rankings, claims, and what the SQL box shows.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date
from itertools import groupby
from typing import Literal, NotRequired, TypedDict, TypeVar

import pyarrow as pa

from ipu_results.doors.analyses import ANALYSES, Analysis
from ipu_results.kit.sql import Connection, run_query
from ipu_results.kit.statements import MACROS, read_statement
from ipu_results.record.check.rules import RULES
from ipu_results.record.store.files import get_parquet_name
from ipu_results.schema import RULES_SCHEMA, SHARED, TABLES, VIEWS, fill_placeholders, sql_view
from ipu_results.schema.vocabulary import load_vocabulary, normalise_name

T = TypeVar("T")

EXAMPLES = {
    "Fastest ResNet-50 inference within 5 ms, of the rows that may be ranked": """\
SELECT platform, framework, batch_size, latency_ms, throughput
FROM inference
WHERE model = 'ResNet-50 v1.5' AND publisher = 'Graphcore' AND latency_ms <= 5 AND usable
ORDER BY throughput DESC""",
    "How many rows may not be ranked, by origin": """\
SELECT origin, count(*) AS results, count(*) FILTER (NOT usable) AS left_out
FROM results GROUP BY origin ORDER BY results DESC""",
    "Batches in flight on the paper's card (Little's law)": """\
SELECT batch_size, latency_ms, throughput,
    round(throughput * latency_ms / 1000 / batch_size, 2) AS batches_in_flight
FROM results WHERE table_name = 'qwant_c2' ORDER BY batch_size""",
    "What is flagged as wrong, and why": """\
SELECT rule, model, platform, column_name, message, suggested
FROM flags JOIN results USING (result_id)
WHERE severity = 'error' ORDER BY ALL""",
    "Where a figure was printed": """\
SELECT column_name, header, raw_text, value, unit, factor, title, locator
FROM provenance
WHERE model = 'DINO' ORDER BY ALL""",
    "Printed MLPerf minutes and the official score": """\
SELECT p.mlperf_id, p.model, p.platform, round(p.time_to_train_s / 60, 2) AS printed,
    round(e.minutes, 4) AS official
FROM results p JOIN mlperf_entries e USING (mlperf_id)
WHERE p.origin = 'published' ORDER BY 1""",
    "Claims by verdict": (
        "SELECT verdict, count(*) AS claims FROM claims GROUP BY verdict ORDER BY claims DESC"
    ),
    "The arithmetic of claims that the data contradict": """\
SELECT claim_id, claim, figure, r.baseline AS against, arithmetic, outcome
FROM claims JOIN recomputations r USING (claim_id)
WHERE verdict = 'contradicted' ORDER BY ALL""",
    "The best throughput within 10 ms, by model and machine": """\
SELECT model, work, origin, platform, throughput, latency_ms, batch_size
FROM detail.latency_bounded
WHERE bound_ms = 10 AND usable ORDER BY model, throughput DESC""",
    "What a dollar buys at a price that you were quoted": """\
SELECT model, ipu_platform, measure, round(performance_ratio, 3) AS performance,
    round(per_dollar_ratio, 3) AS per_dollar, round(break_even_ipu_price_usd) AS tie_at_usd
FROM per_dollar(ipu_price := 120000) WHERE benchmark IS NOT NULL ORDER BY ALL""",
}


# Those of `main` first.
RELATIONS = "FROM relations ORDER BY schema_name DESC, table_name"
COLUMNS = """
    SELECT table_name, column_name, type, unit, description
    FROM columns
    ORDER BY table_name, column_name
"""


def build_sql(connection: Connection) -> dict[str, object]:
    """Collect file names, view statements, tables and views with their columns, and examples."""
    # the statements after the first of a view are its comments
    views = [read_statement(MACROS)]
    views += [sql_view(view)[0] for view in VIEWS]
    views.append(f"CREATE SCHEMA {RULES_SCHEMA}")
    views += [sql_view(view)[0] for view in SHARED]
    return {
        "files": {table.sql_name: get_parquet_name(table.sql_name) for table in TABLES},
        "views": views,
        "relations": run_query(connection, RELATIONS).to_pylist(),
        "columns": encode_query(connection, COLUMNS),
        "examples": [{"title": title, "sql": text} for title, text in EXAMPLES.items()],
    }


class FrameColumn(TypedDict):
    """A column of a frame: numbers in `values`, texts as `codes`, positions in `words`.

    `runs` are the lengths of runs of equal values, where these are stored once each.
    """

    name: str
    kind: Literal["number", "text"]
    values: NotRequired[list[int | float | None]]
    words: NotRequired[list[str]]
    codes: NotRequired[list[int]]
    runs: NotRequired[list[int]]


class Frame(TypedDict):
    """Rows by column, as `site/src/frame.ts` reads them."""

    rows: int
    columns: list[FrameColumn]


# Characters that could end a script element, open a comment in it or, in old engines, end a line of
# it.
ESCAPES = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def format_script(name: str, value: object) -> str:
    """Format a classic script that stores a value as `window.__data[name]`: a page from disk can
    load no JSON.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    escaped = text.translate(ESCAPES)
    return f"(window.__data=window.__data||{{}})[{json.dumps(name)}]={escaped};\n"


def encode_query(connection: Connection, sql: str) -> Frame:
    """Encode the rows of a query by column: numbers unchanged, texts as indexes into their words,
    -1 for none.

    A browser filters a hundred thousand such rows at once. A column has `runs`, the length of each
    run of equal values, where that is shorter; a text column in which no two rows share a word has
    no codes.
    """
    table = run_query(connection, sql)
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            columns.append(_encode_numbers(name, column.to_pylist()))
        else:
            columns.append(_encode_texts(name, list(map(_to_text, column.to_pylist()))))
    return {"rows": table.num_rows, "columns": columns}


def _encode_numbers(name: str, numbers: Sequence[int | float | None]) -> FrameColumn:
    values: list[int | float | None] = []
    for number in numbers:
        # 40.0 is written as 40, in half of the characters
        if isinstance(number, float) and number.is_integer():
            values.append(int(number))
        else:
            values.append(number)
    runs = _list_runs(values)
    if runs is None:
        return {"name": name, "kind": "number", "values": values}
    return {"name": name, "kind": "number", "values": _first_of_runs(values), "runs": runs}


def _encode_texts(name: str, texts: Sequence[str | None]) -> FrameColumn:
    words = sorted({text for text in texts if text is not None})
    position = {word: code for code, word in enumerate(words)}
    codes = [-1 if text is None else position[text] for text in texts]
    if len(words) == len(texts):
        return {"name": name, "kind": "text", "words": [words[code] for code in codes]}
    runs = _list_runs(codes)
    if runs is None:
        return {"name": name, "kind": "text", "words": words, "codes": codes}
    first = _first_of_runs(codes)
    return {"name": name, "kind": "text", "words": words, "codes": first, "runs": runs}


def _list_runs(values: Sequence[object]) -> list[int] | None:
    """Return the lengths of runs of equal values, None where storing them is not shorter."""
    runs = [len(list(group)) for _, group in groupby(values)]
    return runs if 2 * len(runs) < len(values) else None


def _first_of_runs(values: Iterable[T]) -> list[T]:
    return [value for value, _ in groupby(values)]


def _to_text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date):  # or a datetime
        return value.isoformat()
    return str(value)


PAGE = "graphcore-performance-2023-07-04"  # the vendor's page of results, its last capture
# As printed; that page first, then the vendor's newest documents.
ORDER = f"""
    ORDER BY document_id <> '{PAGE}', publisher <> 'Graphcore',
        published_on DESC NULLS LAST, document_id, table_name, row_number, result_id
"""
PRICES = (
    "SELECT platform, list_price_usd FROM platforms WHERE list_price_usd IS NOT NULL"
    " ORDER BY platform"
)
# With the kind of processor, so that a search for "GPU" finds it.
RESULTS = fill_placeholders(f"""
    SELECT r.*, p.family, CASE
        WHEN p.family IN ({{ipu_families}}) THEN 'IPU'
        WHEN regexp_matches(p.family, '^(NVIDIA|AMD)') THEN 'GPU'
        WHEN p.family = 'Google' THEN 'TPU'
    END AS processor
    FROM results r LEFT JOIN platforms p USING (platform) {ORDER}
""")
# `row` is the position of a result on the page. A flag may be on a row of `microbenchmarks`, which
# has a page of its own.
POSITIONS = f"(SELECT result_id, row_number() OVER ({ORDER}) - 1 AS row FROM results)"
FLAGS = f"""
    SELECT row, rule, severity, column_name
    FROM flags JOIN {POSITIONS} USING (result_id)
    ORDER BY ALL
"""
FEW_FIGURES = f"""
    SELECT metric, row, value, unit, scope
    FROM figures JOIN {POSITIONS} USING (result_id)
    ORDER BY ALL
"""
RANKINGS = """
    SELECT
        round, benchmark, rank, submitter, platform, chip_count, minutes, minutes_low, minutes_high,
        tied_ranks, outcome, unscored, published, usable, result_id
    FROM mlperf_ranking
    WHERE division = 'closed' AND scope = 'all-sizes'
    ORDER BY round, benchmark, rank, path
"""


def build_results(connection: Connection) -> dict[str, object]:
    """Collect what the views of results and of comparisons need."""
    results = encode_query(connection, RESULTS)
    ids = run_query(connection, f"SELECT result_id FROM results {ORDER}")["result_id"].to_pylist()
    position = {result_id: row for row, result_id in enumerate(ids)}
    sets = {}
    for analysis in ANALYSES:
        used = _list_results(connection, analysis)
        sets[analysis.name] = sorted(position[key] for key in used & position.keys())
    return {
        "results": results,
        "figures": encode_query(connection, FEW_FIGURES),
        "aliases": build_aliases(),
        "prices": dict(connection.execute(PRICES).fetchall()),
        "flags": encode_query(connection, FLAGS),
        "sets": sets,
        "rules": {rule.id: rule.title for rule in RULES},
        "questions": {analysis.name: analysis.question for analysis in ANALYSES},
    }


def _list_results(connection: Connection, analysis: Analysis) -> set[str]:
    """List the results in the rows of an analysis."""
    used: set[str] = set()
    for view in analysis.views:
        for column in view.columns:
            if column.name.endswith("result_id"):
                sql = f"SELECT DISTINCT {column.name} AS id FROM {view.source}"
                used.update(run_query(connection, sql)["id"].to_pylist())
    return used


def build_aliases() -> dict[str, dict[str, str]]:
    """Collect other names by column and canonical name, normalised and separated by blanks: a
    search finds them.
    """
    vocabulary = load_vocabulary()
    printed = {
        "platform": vocabulary.platform_names,
        "model": vocabulary.model_names,
        "framework": vocabulary.frameworks,
        "precision": vocabulary.precision_names,
    }
    aliases = {}
    for column, canonical in printed.items():
        names = defaultdict(list)
        for name in sorted(canonical):
            if name != normalise_name(canonical[name]):
                names[canonical[name]].append(name)
        aliases[column] = {name: " ".join(words) for name, words in sorted(names.items())}
    return aliases


def build_rankings(connection: Connection) -> Frame:
    """Collect the closed rankings of systems of all sizes."""
    return encode_query(connection, RANKINGS)


CLAIMS = """
    SELECT
        claim_id, document_id, claim, figure, value, unit, subject, baseline, model_printed, task,
        metric, kind, sdk_version, precision_printed, batch, framework, dataset_printed, place,
        interpretation, basis, verdict, reason, gap_percent, gap_kind, not_recomputable,
        recomputation_sql, locator
    FROM claims
    ORDER BY document_id, claim_id
"""
RECOMPUTATIONS = "SELECT * EXCLUDE (position) FROM recomputations ORDER BY claim_id, position"
CONTRADICTIONS = """
    SELECT contradiction_id, kind, claim_ids, what, resolution, recomputed
    FROM contradictions
    ORDER BY contradiction_id
"""
USES = """
    SELECT DISTINCT i.claim_id, coalesce(e.result_id, i.key) AS result_id
    FROM detail.recomputation_inputs AS i
    LEFT JOIN mlperf_entries AS e ON i.table_name = 'mlperf_entries'
        AND i.key = e.round || '/' || e.path
    WHERE i.claim_id <> '' AND (i.table_name = 'results' OR e.result_id IS NOT NULL)
    ORDER BY ALL
"""


def build_claims(connection: Connection) -> dict[str, object]:
    """Collect claims, recomputations, contradictions, and which claim uses which result, itself or
    as an entry.
    """
    return {
        "claims": encode_query(connection, CLAIMS),
        "recomputations": encode_query(connection, RECOMPUTATIONS),
        "contradictions": encode_query(connection, CONTRADICTIONS),
        "uses": run_query(connection, USES).to_pylist(),
    }


REPLICATIONS = """
    SELECT
        first_result_id, second_result_id, first_publisher, second_publisher, first_figure,
        second_figure, measure, ratio, counts, reason, vendor_part, differs, unstated
    FROM replications
    WHERE measure <> 'microbenchmark'
    ORDER BY counts DESC, first_result_id, second_result_id
"""


def build_replications(connection: Connection) -> Frame:
    """Collect the pairs of results of the same work by two parties."""
    return encode_query(connection, REPLICATIONS)


HISTORY = """
    SELECT
        'series ' || dense_rank() OVER (ORDER BY document_id, series) AS series, column_name,
        before_result_id, result_id, before, after, before_published_on, published_on,
        before_sdk_version, sdk_version, silent
    FROM revisions
    ORDER BY document_id, revisions.series, column_name, published_on, result_id
"""


def build_history(connection: Connection) -> Frame:
    """Collect the figures that a page changed, those of one row of it together."""
    return encode_query(connection, HISTORY)


# With the figure as printed, its line in our transcription, and its place in the source, from the
# cell itself.
MICROBENCHMARKS = """
    SELECT
        m.microbenchmark_id, m.chip, m.operation, m.metric, m.shape, m.precision_printed,
        m.statistic, m.chip_count, c.raw_text, m.unit, m.value, m.canonical_value, m.canonical_unit,
        m.sdk_version, m.conditions, m.interest, m.publisher, m.document_id, m.place, c.locator
    FROM microbenchmarks m
    LEFT JOIN cells c ON c.result_id = m.microbenchmark_id AND c.column_name = 'value'
    ORDER BY operation, chip, document_id, row_number, microbenchmark_id
"""
