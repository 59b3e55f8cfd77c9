"""Read a report of optimum-benchmark: benchmark_report.json, or benchmark.json with its configuration."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from ipu_results.submission.adapters.files import Draft, ReadFile, Section, SubmittedFile

NAME = "optimum-benchmark"
CONFIG, REPORT = "config", "report"
MEASUREMENTS = ("latency", "throughput", "energy", "efficiency")
# What each target of a report is. Others are loading, warming up and single tokens.
INFERENCE_TARGETS = {
    "forward": "one forward pass of a batch",
    "prefill": "the first token of each sequence of a batch",
    "generate": "all tokens of a batch",
    "decode": "all tokens of a batch but the first",
    "call": "one call of the pipeline with a batch",
}
TRAINING_TARGET = "train"
LATENCIES = (
    ("mean", "latency of a batch"),
    ("p50", "latency median"),
    ("p90", "latency p90"),
    ("p99", "latency p99"),
    ("stdev", "latency std"),
)
LATENCY_UNIT = "s"
THROUGHPUT_UNITS = {"forward": "samples/s", "prefill": "samples/s", "generate": "samples/s", "decode": "tokens/s"}
CALL_UNIT = "images/s"
ENERGY_UNIT = "kWh"
TOLERANCE = Decimal("1e-6")  # of a product of two printed doubles
DTYPES = ("torch_dtype", "dtype")
ENVIRONMENT = (
    "cpu",
    "machine",
    "platform",
    "processor",
    "python_version",
    "optimum_benchmark_version",
    "torch_version",
)
SCOPE = "machine"  # codecarbon adds up CPU, GPU and memory of the machine
LATENCY_NOTE = "latency is the time of {}, one at a time"


def is_readable(file: SubmittedFile) -> bool:
    """Return whether the file has targets with measurements, alone or under `report`."""
    value = file.value
    report = value.get(REPORT) if isinstance(value, dict) and CONFIG in value else value
    return isinstance(report, dict) and any(_is_target(target) for target in report.values())


def read_report(file: SubmittedFile) -> ReadFile:
    """Read throughput, latency and energy of each target. Raises SubmissionError."""
    whole, draft = Section(file, file.value), Draft(file)
    config = whole.read_section(CONFIG) if REPORT in whole.fields else None
    report = whole.read_section(REPORT) if REPORT in whole.fields else whole
    if report is None:
        file.fail("is null", REPORT)
    facts, items = _read_config(draft, config)
    if config is None:
        draft.remark("hand in benchmark.json instead, which has the model, the batch size and the environment")
    left_out = []
    for target in report.fields:
        section = report.read_section(target)
        if section is None or not (target in INFERENCE_TARGETS or target == TRAINING_TARGET):
            left_out.append(target)
            continue
        if target == TRAINING_TARGET:
            _read_training(draft, section, facts, items)
        else:
            _read_target(draft, section, facts, items, target)
    if left_out:
        draft.remark(f"left out: {', '.join(left_out)}")
    return draft.finish(NAME)


def _is_target(value: Any) -> bool:
    return isinstance(value, dict) and any(
        isinstance(value.get(name), dict) and "unit" in value[name] for name in MEASUREMENTS
    )


def _read_config(draft: Draft, config: Section | None) -> tuple[dict[str, str], str]:
    """Return the facts of the configuration, and the items of one call or step, "" if unknown."""
    backend = config.read_section("backend") if config else None
    scenario = config.read_section("scenario") if config else None
    facts: dict[str, str] = {}
    items = ""
    if backend:
        facts["model"] = backend.read_text("model")
        facts["framework"] = backend.read_text("name")
        facts["precision"] = next(filter(None, map(backend.read_text, DTYPES)), "")
        draft.state("backend version", backend.read_text("version"))
        draft.state("device", backend.read_text("device"))
    environment = config.read_section("environment") if config else None
    for key in ENVIRONMENT if environment else ():
        draft.state(key, environment.read_text(key) if environment else "")
    if backend and environment and backend.read_text("device") == "cuda":
        facts |= _read_gpus(draft, environment, backend.read_text("device_ids"))
    shapes = scenario.read_section("input_shapes") if scenario else None
    arguments = scenario.read_section("training_arguments") if scenario else None
    if shapes:
        items = shapes.read_count("batch_size")
        facts["batch_size"] = items
        length = shapes.read_count("sequence_length")
        facts["conditions"] = f"sequences of {length} tokens" if length else ""
    elif arguments:
        micro = arguments.read_count("per_device_train_batch_size")
        steps = arguments.read_count("gradient_accumulation_steps") or "1"
        facts["micro_batch_size"] = micro
        items = str(int(micro) * int(steps)) if micro and len(micro + steps) < 20 else ""
    return facts, items


def _read_gpus(draft: Draft, environment: Section, device_ids: str) -> dict[str, str]:
    """Return the chip if all GPUs of the machine are of one kind, and their number if the run saw one."""
    names = environment.fields.get("gpu")
    if not isinstance(names, list) or not all(type(name) is str for name in names) or len(set(names)) != 1:
        return {}
    visible = [device for device in device_ids.split(",") if device]
    if len(visible) != 1:
        draft.remark("chip_count: the run saw several GPUs, and the file does not state how many it used")
    return {"chip": names[0], "chip_count": "1" if len(visible) == 1 else ""}


def _read_target(draft: Draft, section: Section, facts: dict[str, str], items: str, target: str) -> None:
    what = INFERENCE_TARGETS[target]
    notes = [f"target {target}", facts.get("conditions", ""), LATENCY_NOTE.format(what)]
    row = {**facts, "task": "inference", "conditions": "; ".join(filter(None, notes))}
    latency, throughput = section.read_section("latency"), section.read_section("throughput")
    if latency:
        _check_unit(latency, LATENCY_UNIT)
        for key, metric in LATENCIES:
            if text := latency.read_number(key):
                draft.add(row, metric, LATENCY_UNIT, text, latency.get_key(key))
        draft.remark("left out: p95, and the single values")
    if throughput:
        unit = _check_unit(throughput, THROUGHPUT_UNITS.get(target, CALL_UNIT))
        text, mean = throughput.read_number("value"), latency.read_number("mean") if latency else ""
        # Some versions divide the tokens of `generate` by its time, and call them samples.
        if target != "generate" or _agrees(draft, text, mean, items, throughput.get_key("value")):
            draft.add(row, "throughput", unit, text, throughput.get_key("value"))
        else:
            draft.remark(
                f"left out: {throughput.get_key('value')}, which is not shown to be the batch size over the mean "
                "latency: some versions count tokens there and write samples"
            )
    _read_energy(draft, section, {**row, "power_scope": SCOPE}, what)


def _read_training(draft: Draft, section: Section, facts: dict[str, str], items: str) -> None:
    row = {**facts, "task": "training", "conditions": f"target {TRAINING_TARGET}, warm-up steps excluded"}
    latency, throughput = section.read_section("latency"), section.read_section("throughput")
    if throughput is None:
        return
    unit, place = _check_unit(throughput, "samples/s"), throughput.get_key("value")
    text, mean = throughput.read_number("value"), latency.read_number("mean") if latency else ""
    # Some versions divide the samples of all steps by the time of one.
    if _agrees(draft, text, mean, items, place):
        draft.add(row, "throughput", unit, text, place)
        draft.remark("left out: latency of a training step")
    else:
        draft.remark(
            f"left out: {place}, which is not shown to be the samples of one step over its mean time: some versions "
            "count the samples of all steps there"
        )


def _read_energy(draft: Draft, section: Section, row: dict[str, str], what: str) -> None:
    energy, efficiency = section.read_section("energy"), section.read_section("efficiency")
    if energy:
        _check_unit(energy, ENERGY_UNIT)
        noted = {**row, "conditions": f"{row['conditions']}; energy of {what}: CPU, GPU and memory by codecarbon"}
        if text := energy.read_number("total"):
            draft.add(noted, "energy", ENERGY_UNIT, text, energy.get_key("total"))
    if efficiency:
        draft.remark("left out: efficiency, which is the batch over the energy")


def _check_unit(section: Section, unit: str) -> str:
    printed = section.read_text("unit")
    if printed != unit:
        section.file.fail(f"{printed[:40]!r} is not the unit of this format, {unit}", section.get_key("unit"))
    return unit


def _agrees(draft: Draft, rate: str, mean: str, items: str, place: str) -> bool:
    """Return whether a rate is the items of one call over its mean time."""
    if not (rate and mean and items):
        return False
    product = Decimal(draft.to_figure(rate, place)) * Decimal(draft.to_figure(mean, place))
    return abs(product / Decimal(items) - 1) <= TOLERANCE
