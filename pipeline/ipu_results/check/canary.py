"""A valid row of `results`, and changes of it that its gate must refuse, by reason."""

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

CHANGES: dict[str, dict[str, Any]] = {
    "throughput-out-of-range": {"throughput": float("inf")},
    "no-figure": {"throughput": None},
    "missing-model": {"model": None},
    "task-not-a-choice": {"task": "Training"},
    "precision-bits": {"weight_bits": 32},
}
