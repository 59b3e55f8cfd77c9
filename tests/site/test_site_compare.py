"""The page's form compares a run as the command does: the same nearest rows, ratios, refusals,
checks and verdict.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict
from typing import Any

import duckdb
import pytest
from ipu_results import compare
from ipu_results.comparison.statements import load_rows as load_comparable_rows
from ipu_results.comparison.verdict import build_stated
from ipu_results.comparison.words import load_known_words
from ipu_results.ground.files import load_schema_file
from ipu_results.ground.text import to_json_value
from ipu_results.schema.accelerators import find_accelerator
from ipu_results.schema.vocabulary import load_vocabulary
from ipu_results.site.data import build_own_run
from ipu_results.store.query import open_warehouse

from tests.comparison.test_mistakes import HONEST, MISTAKES
from tests.conftest import COMMITTED, ROOT

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("node")]
STATED = (
    *(
        "model",
        "task",
        "platform",
        "chip",
        "chip_count",
        "batch_size",
        "precision",
        "framework",
        "phase",
        "sequence_length",
    ),
    *("latency_basis", "throughput", "latency_ms"),
)
RESNET = {
    "model": "ResNet-50 v1.5",
    "task": "inference",
    "platform": "IPU-M2000",
    "batch_size": 4,
}
BERT = {"model": "BERT-Large", "task": "inference", "sequence_length": 128}
RUNS: tuple[dict[str, Any], ...] = (
    {**RESNET, "throughput": 7800},
    {**RESNET, "throughput": 7800, "precision": "FP16", "framework": "TensorFlow1"},
    {**RESNET, "throughput": 7800, "precision": "FP16", "framework": "PyTorch", "latency_ms": 0.4},
    {**RESNET, "latency_ms": 0.52},  # of a basis that is not stated
    {**RESNET, "latency_ms": 1.1, "latency_basis": "per-item"},
    {**RESNET, "latency_ms": 1.1, "latency_basis": "per-batch", "throughput": 3636},
    {**RESNET, "throughput": 7800, "batch_size": None},
    {**RESNET, "throughput": 7800, "platform": None, "batch_size": 3},
    {**RESNET, "throughput": 30000, "platform": "Bow Pod16", "batch_size": 64},
    {
        **RESNET,
        "task": "training",
        "throughput": 30000,
        "platform": "Bow Pod16",
        "batch_size": 2048,
    },
    {
        **RESNET,
        "task": "training",
        "throughput": 109000,
        "platform": "Bow Pod64",
        "batch_size": None,
    },
    {**BERT, "platform": "Bow-2000", "throughput": 3000, "batch_size": 4},
    {**BERT, "sequence_length": None, "platform": "Bow-2000", "throughput": 3000, "batch_size": 4},
    {
        **BERT,
        "task": "training",
        "platform": "Bow Pod16",
        "throughput": 3000,
        "phase": "pre-training phase 1",
    },
    {
        "model": "ResNeXt101-32x4d",
        "task": "inference",
        "platform": "C2",
        "throughput": 900,
        "batch_size": 6,
    },
    {
        "model": "GPT2-Medium",
        "task": "training",
        "platform": "IPU-POD16",
        "throughput": 1,
        "batch_size": 1,
    },
)


def evaluate(module: str, shared: Any, calls: list[list[Any]]) -> list[Any]:
    """Run functions of a module of the page; the first argument of each is `shared`."""
    done = subprocess.run(
        ["node", "tests/evaluate.mjs", module],
        cwd=ROOT / "site",
        input=json.dumps({"shared": shared, "calls": calls}),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answers: list[Any] = json.loads(done.stdout)
    return answers


def load_rows(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Load results, each measurement once, with what the page adds: booleans are words."""
    words = {True: "true", False: "false"}
    return [
        {
            name: words[value] if isinstance(value, bool) else to_json_value(value)
            for name, value in row.items()
        }
        for row in load_comparable_rows(connection)
        if row["unusable"] != "repeated"
    ]


def state_as_on_page(figures: dict[str, Any]) -> dict[str, Any] | None:
    """Return a run as the form states it, in canonical words; None where the form has no field for
    a figure of it.
    """
    with open_warehouse(COMMITTED) as connection:
        own = build_stated(figures, load_known_words(connection))
    stated = {name: getattr(own, name) for name in STATED}
    known = {
        "item",
        "remarks",
        "label",
        "setup",
        "origin",
        *(("chip", "chip_count") if own.platform else ()),
    }
    others = [
        name
        for name, value in asdict(own).items()
        if value is not None and name not in {*STATED, *known}
    ]
    if others:
        return None
    accelerator = None if own.platform else find_accelerator(own.chip)
    return {**stated, "chip": accelerator and load_vocabulary().name_chip(accelerator.chip)}


def test_page_finds_and_refuses_the_rows_that_the_command_does(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    rules = load_schema_file("comparison.toml")["run"]
    shared = {"rows": load_rows(connection), "rules": rules, "known": build_own_run(connection)}
    mistakes = [
        run
        for run in map(state_as_on_page, [*(figures for figures, _ in MISTAKES), *HONEST])
        if run
    ]
    runs = [{name: run.get(name) for name in STATED} for run in (*RUNS, *mistakes)]
    answers = evaluate(
        "verdict.ts", json.loads(json.dumps(shared)), [["judgeRun", run] for run in runs]
    )
    groups, reasons, verdicts = set(), set(), set()
    for run, answer in zip(runs, answers, strict=True):
        stated = {name: value for name, value in run.items() if value is not None}
        (own,) = compare(warehouse=COMMITTED, **stated)
        expected = own.to_record()
        assert [
            (
                match["group"],
                match["row"]["result_id"],
                match["distance"],
                match["not_compared"],
                match["ratio_per_chip"],
            )
            for match in answer["matches"]
        ] == [
            (
                *(match["group"], match["row"]["result_id"], pytest.approx(match["distance"])),
                *(
                    match["not_compared"],
                    match["ratio_per_chip"] and pytest.approx(match["ratio_per_chip"]),
                ),
            )
            for match in expected["matches"]
        ], run
        assert [
            [(each["figure"], each["ratio"]) for each in match["ratios"]]
            for match in answer["matches"]
        ] == [
            [(each["figure"], each["ratio"]) for each in match["ratios"]]
            for match in expected["matches"]
        ]
        assert answer["refusals"] == [
            {"reason": refusal["reason"], "rows": refusal["rows"]}
            for refusal in expected["refusals"]
        ], run
        ours = {check["name"]: (check["outcome"], check["message"]) for check in expected["checks"]}
        assert {
            check["name"]: (check["outcome"], check["message"]) for check in answer["checks"]
        } == {name: ours[name] for name in ours if name != "power rating"}, run
        assert (answer["status"], answer["verdict"]) == (
            expected["status"],
            expected["verdict"],
        ), run
        verdicts.add(answer["status"])
        groups |= {match["group"] for match in answer["matches"]}
        reasons |= {refusal["reason"].partition(":")[0] for refusal in answer["refusals"]}
    assert {"vendor", "independent"} <= groups
    assert len(reasons) >= 7
    assert len(mistakes) >= 55
    assert {
        "implausible",
        "doubtful",
        "plausible",
        "depends",
        "other-conditions",
        "no-comparable-row",
    } <= verdicts
