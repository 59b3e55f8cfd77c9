"""Real rows of the committed dataset for the tests of the rules, and changes of their printed
cells.

That the committed dataset is what a build gives is the proof of test_ingest.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from ipu_results.kit.sql import ENGINE, STAGED, open_database
from ipu_results.record.check import rules
from ipu_results.record.check.rules import RULES, Rule, add_table, find_flags
from ipu_results.record.derive import derive_figures
from ipu_results.record.normalise.fields import CellContext, convert_cell, get_column
from ipu_results.schema import DETAIL, RULES_SCHEMA, SHARED, View, table
from ipu_results.schema.frames import to_pandas
from ipu_results.schema.vocabulary import load_vocabulary

from benchmarks.planted_errors import Tables, load_tables
from tests.conftest import ROOT

Flag = tuple[str, str, str, str, str | None]

# Rows of the performance page of 2023-07-04 that more than one test uses.
FASTSPEECH = "bow_inference 34-37"
BERT_LARGE = "bow_inference 4-7"
EFFICIENTNET_B0 = "pod_inference 40-42"
RESNEXT = "pod_inference 32-35"
YOLO_BOW = "bow_inference 19-26"
YOLO_POD = "pod_inference 62-69"
RESNET_256 = ("bow_inference 12", "pod_inference 25")
DINO = "bow_training 54-55"
VIT = "bow_training 51-52"
TGN = "bow_training 36"
CLUSTER_GCN = "bow_training 37"
FASTPITCH = "bow_training 35"
CLIP = "bow_training 64"
GPT2 = "bow_inference 1-3"
GPT2_TRAINING = "bow_training 27"
EFFICIENTDET = "bow_inference 27"
PAPER = "qwant_c2 1-6"
REQUIRED_COLUMNS = {
    "platform": ("platform", "chip", "chip_count"),
    "precision": ("precision_printed", "activation_bits", "weight_bits"),
}


@cache
def load_dataset() -> Tables:
    """Load the whole committed dataset as the rules see it."""
    return load_tables()


def without_header(data: Tables) -> Tables:
    """Return the same tables as if none had a printed header."""
    return data | {"source_tables": data["source_tables"].assign(header_printed=False)}


def change_results(data: Tables, **values: Any) -> Tables:
    """Give all results other values in some columns."""
    return data | {"results": data["results"].assign(**values)}


def pick(*places: str, configured: bool = False) -> Tables:
    """Return the rows at places such as `bow_inference 34-37`; with `configured` also what their
    configurations say.
    """
    data = load_dataset()
    results = _load_published()
    chosen = np.zeros(len(results), dtype=bool)
    for place in places:
        table, first, last = split_place(place)
        chosen |= (results["table_name"] == table) & results["row_number"].between(first, last)
    results = results[chosen].reset_index(drop=True)
    kept = {name: _keep(name, results) for name in ("cells", "contradicted", "configurations")}
    data = data | {"results": results} | kept
    if configured:
        return data
    no_basis = pd.Series(None, index=results.index, dtype=results["latency_basis"].dtype)
    no_configurations = {"configurations": data["configurations"][:0]}
    return change_results(data | no_configurations, latency_basis=no_basis)


@cache
def _load_published() -> pd.DataFrame:
    results = load_dataset()["results"]
    return results[results["origin"] == "published"]


@cache
def _find_rows(name: str) -> dict[str, Any]:
    """Find the positions of the rows of each result once: looking for a few among all takes longer
    than a rule.
    """
    indices: dict[str, Any] = load_dataset()[name].groupby("result_id").indices
    return indices


def _keep(name: str, results: pd.DataFrame) -> pd.DataFrame:
    rows = _find_rows(name)
    kept = [at for result_id in results["result_id"] for at in rows.get(result_id, ())]
    return load_dataset()[name].take(sorted(kept)).reset_index(drop=True)


def change(data: Tables, place: str, **texts: str) -> Tables:
    """Print other texts in the cells of one row, by field of the header; the row's values follow."""
    table, number = place.split()
    results = data["results"].copy()
    cells = data["cells"].copy()
    is_row = (results["table_name"] == table) & (results["row_number"] == int(number))
    [row] = results.index[is_row]
    own = cells["result_id"] == results["result_id"][row]
    own &= cells["document_id"] == results["document_id"][row]
    for field, text in texts.items():
        column = get_column(field)
        [cell] = cells.index[own & (cells["column_name"] == column)]
        unit = cells["unit"][cell]
        unit = None if pd.isna(unit) or column == "batch_size" else str(unit)
        converted = convert_cell(field, text, CellContext(load_vocabulary(), unit, False))
        cells.loc[cell, ["raw_text", "value"]] = [text, converted.figure]
        for name in REQUIRED_COLUMNS.get(field, (column,)):
            results.loc[row, name] = None
        for name, value in converted.values.items():
            results.loc[row, name] = value
    return data | {"results": results, "cells": cells}


def configure(data: Tables, place: str, **values: Any) -> Tables:
    """Change the configuration behind one row."""
    table, number = place.split()
    rows = data["configurations"].copy()
    is_row = (rows["result_table"] == table) & (rows["result_row"] == int(number))
    [row] = rows.index[is_row]
    for name, value in values.items():
        rows.loc[row, name] = value
    return data | {"configurations": rows}


def split_place(place: str) -> tuple[str, int, int]:
    """Return table, first and last row of a place such as `bow_inference 34-37`."""
    table, numbers = place.split()
    first, _, last = numbers.partition("-")
    return table, int(first), int(last or first)


def load_review() -> dict[str, dict[str, Any]]:
    """Load what reading every hit of the rules by hand doubtful, by rule."""
    review = tomllib.loads((ROOT / "schema" / "rule_review.toml").read_text())
    return {entry["id"]: entry for entry in review["rule"]}


def list_doubtful(entry: dict[str, Any], hits: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
    """Return the hits (table, row, column) that an entry of the review names; KeyError for a place
    without one.
    """
    doubtful: list[Sequence[Any]] = []
    for place in entry["rows"]:
        table, first, last = split_place(place)
        numbers = set(range(first, last + 1))
        named = [hit for hit in hits if hit[0] == table and hit[1] in numbers]
        if "column" in entry:
            named = [hit for hit in named if hit[2] == entry["column"]]
        if {hit[1] for hit in named} != numbers:
            raise KeyError(place)
        doubtful += named
    return doubtful


def run(data: Tables, *rule_ids: str) -> pd.DataFrame:
    """Return the flags of some rules, or of all."""
    found = [rule for rule in RULES if not rule_ids or rule.id in rule_ids]
    with (
        open_database(_open_dataset(), STAGED, DETAIL, RULES_SCHEMA) as staged,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, frame in data.items():
            if name == "figures":
                continue
            if frame is load_dataset()[name]:
                sql_name = table(name).sql_name
                staged.execute(f"CREATE VIEW {sql_name} AS FROM memory.{sql_name}")
            else:
                add_table(staged, name, frame)
        derive_figures(staged)
        patch.setattr(rules, "SHARED", _list_shared(found))
        find_flags(staged, found)
        return to_pandas(staged.table("flags").to_arrow_table())


@cache
def _open_dataset() -> duckdb.DuckDBPyConnection:
    """Open a database with the committed tables, of which a test changes a few."""
    connection = duckdb.connect(config=ENGINE)
    connection.execute(f"CREATE SCHEMA {DETAIL}")
    for name, frame in load_dataset().items():
        add_table(connection, name, frame)
    return connection


def _list_shared(found: Sequence[Rule]) -> list[View]:
    """List what some rules share, which takes longer than one of them."""
    texts = [rule.statement for rule in found]
    needed = []
    for view in reversed(SHARED):  # a view reads those before it
        if any(view.sql_name in text for text in texts):
            needed.insert(0, view)
            texts.append(view.sql)
    return needed


def find(rule_id: str, data: Tables) -> list[Flag]:
    """Return the flags of one rule in printed order: severity, `table row`, column, message,
    suggestion.
    """
    places = data["results"][["result_id", "document_id", "table_name", "row_number"]]
    flags = run(data, rule_id).merge(places)
    assert set(flags["rule"]) <= {rule_id}
    flags = flags.sort_values(["document_id", "table_name", "row_number", "column_name"])
    told = []
    for flag in flags.to_dict("records"):
        place = f"{flag['table_name']} {flag['row_number']}"
        suggested = None if pd.isna(flag["suggested"]) else flag["suggested"]
        told.append((flag["severity"], place, flag["column_name"], flag["message"], suggested))
    return told


def find_brief(rule_id: str, data: Tables) -> list[str]:
    """Return the flags of one rule without their messages, which the flags of the committed rows
    pin.
    """
    return [
        f"{severity} {place} {column} {suggested or ''}".strip()
        for severity, place, column, _, suggested in find(rule_id, data)
    ]


def find_places(rule_id: str, data: Tables) -> list[str]:
    """Return where one rule flags."""
    return [place for _, place, *_ in find(rule_id, data)]
