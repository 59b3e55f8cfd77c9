"""The figures to compare: what they hold, and how words and numbers are checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ipu_results.comparison.words import KnownWords
from ipu_results.errors import ComparisonError

COUNTS = ("batch_size", "micro_batch_size", "chips", "sequence_length")
FIGURES = ("throughput", "latency_ms", "minutes", "efficiency", "power_w")
BOUNDS = ("latency_ms_low", "latency_ms_high")
SPARSITY = "sparsity"  # at most 1; a dense network has none
WORDS = (
    *("model", "platform", "framework", "precision", "item", "task", "phase", "latency_kind", "latency_basis"),
    *("power_scope", "benchmark", "division", "origin"),
)
TEXTS = ("variant", "dataset", "sdk_version", "chip", "mlperf_round", "suspect", "run_id")
FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
ALIASES = {"chip_count": "chips", "compute_precision": "precision", "round": "mlperf_round", "network": "model"}
FIELDS = frozenset({*COUNTS, *FIGURES, *BOUNDS, *WORDS, *TEXTS, "packed", SPARSITY})
MAX_COUNT, MAX_FIGURE = 2**53, 1e15


@dataclass(frozen=True, slots=True)
class Measurement:
    """Figures of one run at one batch size; null where they are not known. Units are those of the table `results`.

    `label` names it in a report. `setup` holds what a run folder knows beyond the columns, `remarks` what was assumed.
    """

    label: str
    model: str
    task: str
    network: str
    origin: str = "measured"
    platform: str | None = None
    framework: str | None = None
    precision: str | None = None
    item: str | None = None
    phase: str | None = None
    latency_kind: str | None = None
    latency_basis: str | None = None
    power_scope: str | None = None
    benchmark: str | None = None
    division: str | None = None
    variant: str | None = None
    dataset: str | None = None
    sdk_version: str | None = None
    chip: str | None = None
    mlperf_round: str | None = None
    suspect: str | None = None
    conditions: str | None = None
    run_id: str | None = None
    batch_size: int | None = None
    micro_batch_size: int | None = None
    chips: int | None = None
    sequence_length: int | None = None
    packed: bool | None = None
    sparsity: float | None = None
    throughput: float | None = None
    latency_ms: float | None = None
    latency_ms_low: float | None = None
    latency_ms_high: float | None = None
    minutes: float | None = None
    efficiency: float | None = None
    power_w: float | None = None
    setup: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @property
    def stated_basis(self) -> str | None:
        """What the latency times; None where it is not stated."""
        return self.latency_basis or self.latency_kind


def build_measurement(
    values: Mapping[str, Any], words: KnownWords, *, label: str, local: bool = False, setup: Mapping[str, Any] = {}
) -> Measurement:
    """Check figures and words, and return them with canonical names.

    `local` values come from a run folder: a machine, framework or network that is unknown there keeps its own name.
    Raises ComparisonError that lists every unknown word and wrong number at once.
    """
    problems: list[str] = []
    fields: dict[str, Any] = {}
    for stated, value in values.items():
        name = ALIASES.get(stated, stated)
        if value is None or value == "":
            continue
        if name in fields:
            problems.append(f"{name} is stated twice")
        fields[name] = _parse(name, value, words, local, problems)
    if "model" not in fields:
        problems.append("no model; state which network ran, with --model")
    if not any(name in fields for name in FIGURES):
        problems.append(f"no figure; state at least one of {', '.join(FIGURES)}")
    if "minutes" in fields and fields.get("task") == "inference":
        problems.append("minutes are a time to train, and the task is inference; state latency_ms instead")
    if problems:
        raise ComparisonError("; ".join(problems), place=label)
    _check_interval(fields, label)
    network = _find_network(fields["model"], words, label)
    remarks = _fill(fields, network, words)
    if "minutes" in fields and "task" not in fields:
        fields["task"], remarks = "training", (*remarks, "task training: minutes are a time to train")
    return Measurement(label=label, network=network, setup=setup, remarks=remarks, **{"task": "inference", **fields})


def _parse(name: str, value: Any, words: KnownWords, local: bool, problems: list[str]) -> Any:
    if name in COUNTS:
        return _parse_number(name, value, problems, whole=True)
    if name in FIGURES or name in BOUNDS or name == SPARSITY:
        return _parse_number(name, value, problems, whole=False)
    if name == "packed":
        flag = value if isinstance(value, bool) else FLAGS.get(str(value).strip().casefold())
        if flag is None:
            problems.append(f"packed {value!r} is neither true nor false")
        return flag
    text = str(value).strip()
    if name not in WORDS:
        return text
    known = words.find(name, text)
    if known is None and not (local and name in ("model", "platform", "framework", "precision")):
        problems.append(words.describe_unknown(name, text))
    return known or text


def _parse_number(name: str, value: Any, problems: list[str], *, whole: bool) -> float | int | None:
    """Return a finite number above zero; a figure that is not known is left out, not zero."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        problems.append(f"{name} {value!r} is not a number; write 1234.5, without separators or unit")
    elif number <= 0:
        problems.append(f"{name} {value} is not above 0; leave out what was not measured")
    elif number > (1 if name == SPARSITY else MAX_COUNT if whole else MAX_FIGURE) or (
        whole and not number.is_integer()
    ):
        problems.append(f"{name} {value} is not a {'whole number' if whole else 'number'} in range")
    else:
        return int(number) if whole else number
    return None


def _check_interval(fields: Mapping[str, Any], label: str) -> None:
    low, middle, high = (fields.get(name) for name in ("latency_ms_low", "latency_ms", "latency_ms_high"))
    if (low is None) != (high is None):
        raise ComparisonError(
            "latency_ms_low and latency_ms_high are two ends of one interval: state both", place=label
        )
    if low is not None and not low <= (middle or low) <= high:
        raise ComparisonError("latency_ms is outside latency_ms_low to latency_ms_high", place=label)


def _find_network(model: str, words: KnownWords, label: str) -> str:
    networks = words.networks.get(model, (model,))
    if model in networks or len(networks) == 1:
        return model if model in networks else networks[0]
    raise ComparisonError(f"model {model!r} names several networks: {', '.join(networks)}; state which", place=label)


def _fill(fields: dict[str, Any], network: str, words: KnownWords) -> tuple[str, ...]:
    """Fill in what follows from the machine and the network, and return a remark for each."""
    remarks = []
    machine = words.machines.get(fields.get("platform") or "", {})
    for name, fact in (("chip", "chip"), ("chips", "chip_count")):
        if fields.get(name) is None and machine.get(fact) is not None:
            fields[name] = machine[fact]
            remarks.append(f"{name} {machine[fact]}: all of {fields['platform']}")
    item = words.items.get(network) or words.items.get(fields["model"])
    if fields.get("item") is None and item:
        fields["item"] = item
        remarks.append(f"item {item}: that of {network}")
    return tuple(remarks)
