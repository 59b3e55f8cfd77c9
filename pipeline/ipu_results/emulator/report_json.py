"""The validation as one JSON object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ipu_results.emulator.prediction import MS
from ipu_results.emulator.published import SETS
from ipu_results.emulator.report import Report, ratios
from ipu_results.emulator.validation import IN_SAMPLE, LEAVE_ONE_OUT, TARGETS, Score, Scored, Targets, score


def as_json(report: Report) -> dict[str, Any]:
    return {
        "origin": "emulated",
        "calibration_id": report.calibration.id,
        "calibration_agrees": not report.differs,
        "predictions_departed": [one.row.result_id for one in report.departed],
        "scores": list(_scores_json(report)),
        "ratios": [
            {"against": one.against, "ratio": one.watched, "honest": one.honest, "target": one.target}
            for one in ratios(report)
        ],
        "baselines": {name: {one: _json(report.other(name, one)) for one in SETS} for name in report.others},
        "rows": [_row_json(one) for one in report.scored],
    }


def _scores_json(report: Report) -> Iterator[dict[str, Any]]:
    limits: list[tuple[str, Score, Targets]] = [
        ("c2 in sample", score(report.inside), Targets(IN_SAMPLE, float("inf"))),
        ("c2 leave one out", score(report.outside), Targets(LEAVE_ONE_OUT, float("inf"))),
        *((name, report.score(name), wanted) for name, wanted in TARGETS.items()),
    ]
    for name, found, wanted in limits:
        mean_met, most_met = found.meets(wanted)
        most = wanted.most if wanted.most != float("inf") else None
        limits_told = {"mean_target": wanted.mean, "max_target": most}
        yield {"set": name, **_json(found), **limits_told, "met": mean_met and most_met}


def _json(found: Score) -> dict[str, float]:
    return {"rows": found.rows, "mean": found.mean, "max": found.most}


def _row_json(one: Scored) -> dict[str, Any]:
    how, found = one.row.how, one.prediction
    return {
        "result_id": one.row.result_id,
        "set": how.set,
        "network": how.network,
        "target": how.target,
        "framework": how.framework,
        "variant": one.row.variant or None,
        "protocol": how.protocol,
        "batch_size": one.row.batch,
        "published_ms": one.row.seconds * MS,
        "emulated_ms": one.seconds * MS,
        "emulated_device_ms": found.device_ms,
        "emulated_protocol_ms": found.protocol_ms,
        "error": one.error,
    }
