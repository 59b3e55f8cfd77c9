"""Ten queries on a table of results: in SQL that DuckDB and SQLite both read, and in pandas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

Frame = Any


@dataclass(frozen=True, slots=True)
class Query:
    """One query. pandas loads `columns`; `{id0}` to `{id2}` are replaced by keys of the table."""

    name: str
    sql: str
    columns: tuple[str, ...]
    frame: Callable[[Frame, tuple[str, ...]], Frame]


def _count_by_machine(frame: pd.DataFrame, _: tuple[str, ...]) -> Frame:
    return frame.groupby(["task", "platform"]).size().reset_index()


def _look_up(frame: pd.DataFrame, ids: tuple[str, ...]) -> Frame:
    return frame[frame["result_id"].isin(ids)]


def _find_fastest(frame: pd.DataFrame, _: tuple[str, ...]) -> Frame:
    rows = frame[(frame["task"] == "inference") & (frame["precision"] == "16.16")]
    return rows.groupby("model")["throughput"].max().reset_index()


def _rank_top(frame: pd.DataFrame, _: tuple[str, ...]) -> Frame:
    rows = frame[(frame["model"] == "BERT-Large") & (frame["task"] == "inference")]
    rows = rows.assign(per_chip=rows["throughput"] / rows["chip_count"])
    rows = rows.nlargest(20, "per_chip", keep="all")
    rows = rows.sort_values(["per_chip", "result_id"], ascending=[False, True]).head(20)
    return rows[["result_id", "platform", "per_chip"]]


def _read_curve(frame: pd.DataFrame, _: tuple[str, ...]) -> Frame:
    rows = frame[
        (frame["model"] == "ResNet-50 v1.5")
        & (frame["platform"] == "Bow Pod16")
        & (frame["framework"] == "PyTorch")
    ]
    return rows.groupby("batch_size").agg({"latency_ms": "min", "throughput": "max"}).reset_index()


def _compare_generations(frame: pd.DataFrame, _: tuple[str, ...]) -> Frame:
    rows = frame[
        (frame["task"] == "inference")
        & (frame["chip_count"] == 16)
        & frame["chip"].isin(["Bow", "GC200"])
    ]
    mean = rows.groupby(["model", "chip"])["throughput"].mean().unstack()
    return (mean["Bow"] / mean["GC200"]).reset_index()


def _average_by_month(frame: pd.DataFrame, _: tuple[str, ...]) -> Frame:
    months = frame.groupby(frame["published_on"].dt.to_period("M"))["throughput"].agg(
        ["size", "mean"]
    )
    return months.set_axis(months.index.astype(str)).reset_index()


def _find_latest(frame: pd.DataFrame, _: tuple[str, ...]) -> Frame:
    rows = frame[(frame["platform"] == "IPU-POD64") & (frame["framework"] == "PopART")]
    rows = rows.sort_values(["published_on", "result_id"], ascending=False)
    return rows.drop_duplicates(["model", "precision"])[
        ["model", "precision", "result_id", "throughput"]
    ]


def _compute_percentile(frame: pd.DataFrame, _: tuple[str, ...]) -> Frame:
    rows = frame[
        (frame["model"] == "BERT-Base")
        & (frame["task"] == "inference")
        & frame["latency_ms"].notna()
    ]
    return (
        rows.groupby("platform")["latency_ms"].quantile(0.95, interpolation="higher").reset_index()
    )


def _search_text(frame: pd.DataFrame, _: tuple[str, ...]) -> Frame:
    rows = frame[frame["variant"].str.contains("SL512", regex=False).fillna(False).astype(bool)]
    return rows.groupby("framework")["batch_size"].agg(["size", "mean"]).reset_index()


QUERIES = (
    Query(
        "count by task and platform",
        "SELECT task, platform, count(*) FROM results GROUP BY task, platform",
        ("task", "platform"),
        _count_by_machine,
    ),
    Query(
        "three rows by key",
        "SELECT result_id, model, throughput FROM results WHERE result_id IN ('{id0}', '{id1}',"
        " '{id2}')",
        ("result_id", "model", "throughput"),
        _look_up,
    ),
    Query(
        "fastest inference of each model",
        "SELECT model, max(throughput) FROM results WHERE task = 'inference' AND precision ="
        " '16.16' GROUP BY model",
        ("model", "throughput", "task", "precision"),
        _find_fastest,
    ),
    Query(
        "top 20 by throughput per chip",
        "SELECT result_id, platform, throughput / chip_count AS per_chip FROM results WHERE model ="
        " 'BERT-Large' AND task = 'inference' ORDER BY per_chip DESC, result_id LIMIT 20",
        ("result_id", "platform", "throughput", "chip_count", "model", "task"),
        _rank_top,
    ),
    Query(
        "one curve over the batch",
        "SELECT batch_size, min(latency_ms), max(throughput) FROM results WHERE model = 'ResNet-50"
        " v1.5' AND platform = 'Bow Pod16' AND framework = 'PyTorch' GROUP BY batch_size",
        ("batch_size", "latency_ms", "throughput", "model", "platform", "framework"),
        _read_curve,
    ),
    Query(
        "gain of a generation, by model",
        "SELECT model, avg(CASE WHEN chip = 'Bow' THEN throughput END) / avg(CASE WHEN chip ="
        " 'GC200' THEN throughput END) FROM results WHERE task = 'inference' AND chip_count = 16"
        " AND chip IN ('Bow', 'GC200') GROUP BY model",
        ("model", "chip", "throughput", "task", "chip_count"),
        _compare_generations,
    ),
    Query(
        "count and mean by month",
        "SELECT substr(CAST(published_on AS VARCHAR), 1, 7), count(*), avg(throughput) FROM results"
        " GROUP BY 1",
        ("published_on", "throughput"),
        _average_by_month,
    ),
    Query(
        "latest of each model and precision",
        "SELECT model, precision, result_id, throughput FROM (SELECT *, row_number() OVER"
        " (PARTITION BY model, precision ORDER BY published_on DESC, result_id DESC) AS place FROM"
        " results WHERE platform = 'IPU-POD64' AND framework = 'PopART') AS ranked WHERE place = 1",
        ("model", "precision", "result_id", "throughput", "published_on", "platform", "framework"),
        _find_latest,
    ),
    Query(
        "95th percentile of latency",
        "SELECT platform, min(latency_ms) FROM (SELECT platform, latency_ms, row_number() OVER"
        " (PARTITION BY platform ORDER BY latency_ms) - 1 AS below, count(*) OVER (PARTITION BY"
        " platform) - 1 AS others FROM results WHERE model = 'BERT-Base' AND task = 'inference' AND"
        " latency_ms IS NOT NULL) AS ranked WHERE below * 100 >= others * 95 GROUP BY platform",
        ("platform", "latency_ms", "model", "task"),
        _compute_percentile,
    ),
    Query(
        "text search in the variant",
        "SELECT framework, count(*), avg(batch_size) FROM results WHERE variant LIKE '%SL512%'"
        " GROUP BY framework",
        ("framework", "batch_size", "variant"),
        _search_text,
    ),
)
