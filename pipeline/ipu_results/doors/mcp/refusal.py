"""Refuse a question that may not be answered: a code for programs, a reason and a next step for people."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ipu_results.errors import IpuResultsError

WORDS: Mapping[str, Any] = tomllib.loads(
    Path(__file__).with_name("tools.toml").read_text(encoding="utf-8")
)
"""Instructions, tools, arguments and refusals in words, for an agent."""
CODES: Mapping[str, str] = {code: about for code, (about, _) in WORDS["refusals"].items()}
NEXT_STEPS: Mapping[str, str] = {code: step for code, (_, step) in WORDS["refusals"].items()}
"""The next step of a refusal that has no step of its own."""


class RefusalError(IpuResultsError):
    """A question that may not be answered. `code` is one of CODES, `arguments` would pass."""

    def __init__(
        self,
        code: str,
        reason: str,
        next_step: str = "",
        arguments: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        assert code in CODES, code
        self.code = code
        self.reason = reason
        self.next_step = next_step or NEXT_STEPS[code]
        self.arguments = dict(arguments)
        super().__init__(f"{code}: {reason}")

    def to_record(self) -> dict[str, Any]:
        """Return what a program gets."""
        record = {"code": self.code, "reason": self.reason, "next_step": self.next_step}
        return record | ({"arguments": self.arguments} if self.arguments else {})
