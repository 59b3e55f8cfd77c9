"""Refuse a question that may not be answered: a code for programs, a reason and a next step for
people.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ipu_results.errors import IpuResultsError

Answer = dict[str, Any]
"""An answer of a tool, or a part of one, as an object of JSON."""
WORDS: Answer = tomllib.loads(Path(__file__).with_name("tools.toml").read_text(encoding="utf-8"))
"""Instructions, tools, arguments and refusals in words, for an agent."""
CODES: Mapping[str, str] = {code: about for code, (about, _) in WORDS["refusals"].items()}


class RefusalError(IpuResultsError):
    """A question that may not be answered: `code` is one of CODES for programs, `reason` and
    `next_step` are for people, and `arguments` would pass.

    The next step is that of the code, unless it has one of its own.
    """

    def __init__(
        self,
        code: str,
        reason: str,
        next_step: str = "",
        arguments: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        _, step_of_code = WORDS["refusals"][code]
        self.code = code
        self.reason = reason
        self.next_step = next_step or step_of_code
        self.arguments = arguments
        super().__init__(f"{code}: {reason}")

    def to_answer(self) -> Answer:
        """Return what a program gets."""
        answer: Answer = {
            "status": "refused",
            "code": self.code,
            "reason": self.reason,
            "next_step": self.next_step,
        }
        if self.arguments:
            answer["arguments"] = dict(self.arguments)
        return answer


def join_refusals(refusals: Sequence[RefusalError]) -> RefusalError:
    """Join refusals of one question: the code of the first, and what each says."""
    if len(refusals) == 1:
        return refusals[0]
    reasons = dict.fromkeys(refusal.reason for refusal in refusals)
    steps = dict.fromkeys(refusal.next_step for refusal in refusals)
    return RefusalError(refusals[0].code, "; ".join(reasons), "; ".join(steps))
