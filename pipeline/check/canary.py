"""Bad rows that the gate of `results` must refuse before any of its passes is trusted."""

from __future__ import annotations

from typing import Any

GOOD: dict[str, Any] = {
    "result_id": "0123456789abcdef",
    "origin": "published",
    "publisher": "canary",
    "document_id": "canary",
    "task": "training",
    "model": "canary",
    "platform": "canary",
    "precision": "16.16",
    "activation_bits": 16,
    "weight_bits": 16,
    "throughput": 1.0,
}

CHANGES: tuple[dict[str, Any], ...] = (
    {"throughput": float("inf")},
    {"throughput": None},
    {"model": None},
    {"task": "Training"},
    {"weight_bits": 32},
)

BAD = tuple(GOOD | {"result_id": f"{number:016x}"} | change for number, change in enumerate(CHANGES))
