"""Read JSON reports of ByteMLPerf and optimum-benchmark, and the CSV template itself."""

from __future__ import annotations

import csv
import io
import re
from decimal import Decimal

from ipu_results.ground.files import load_schema_file
from ipu_results.ground.text import describe_unknown_columns
from ipu_results.submission.adapters import Adapter, ReadFile, Section, SubmittedFile
from ipu_results.submission.bundle import COLUMNS

FORMS = load_schema_file("adapters.toml")
BYTEMLPERF, OPTIMUM = FORMS["bytemlperf"], FORMS["optimum-benchmark"]

PRINTED_MODEL = re.compile(r"(.+)-(?:TORCH|TF|ONNX)-FP32", re.IGNORECASE)
BATCHED = frozenset({"Performance", "Graph Compile"})  # either is in every report
CALL_LATENCY = "latency is the time of one call of a batch; calls in flight not stated"


def _read_bytemlperf(result: ReadFile) -> None:
    """Read throughput, latency and quality of each batch size of a `result-*.json`
    (byte_infer_perf/general_perf).
    """
    file = result.file
    report = Section(file, file.value)
    printed = report.read_text("Model")
    if not printed:
        file.fail("is absent or blank", "Model")
    match = PRINTED_MODEL.fullmatch(printed)
    model, variant = BYTEMLPERF["networks"].get(
        (match[1] if match else printed).upper(), (printed, "")
    )
    compiled = report.read_section("Graph Compile")
    executed = report.read_text("Execution Date").split(" ")[0]
    sparsity = str(compiled.fields.get("Sparsity Ratio", "")) if compiled else ""
    notes = [
        f"report of {executed}" if executed else "",
        f"sparsity ratio {sparsity}" if sparsity else "",
    ]
    facts = {
        **{"model": model, "variant": variant, "task": "inference"},
        **{column: report.read(*path) for column, path in BYTEMLPERF["columns"].items()},
        "conditions": "; ".join(filter(None, (f"model {printed}", *notes, CALL_LATENCY))),
    }
    for key in BYTEMLPERF["environment"]:
        result.state(key, report.read_text(key))
    sizes: set[str] = set()
    for entry in report.read_sections("Performance"):
        size = entry.read_count("BS")
        if not size:
            file.fail("is absent", entry.get_key("BS"))
        if size in sizes:
            file.fail(f"batch size {size} occurs twice", entry.get_key("BS"))
        sizes.add(size)
        _add_batch(result, entry, report.read_section("Accuracy"), {**facts, "batch_size": size})
    result.remark(
        "latency: write `latency of a batch` as the metric if one client thread called, `latency"
        " among several` if several did, and their number in `conditions`"
    )
    if variant.startswith("SL"):
        result.remark(f"variant: write `{variant} packed` if sequences were packed")


def _add_batch(
    result: ReadFile, entry: Section, accuracy: Section | None, facts: dict[str, str]
) -> None:
    for key, (metric, unit) in BYTEMLPERF["figures"].items():
        # Versions of the suite write a blank or an underscore.
        spellings = {
            spelling: entry.read_number(spelling)
            for spelling in dict.fromkeys((key, key.replace(" ", "_")))
        }
        values = {spelling: value for spelling, value in spellings.items() if value}
        if len(values) > 1:
            entry.file.fail(f"is there twice, as {' and '.join(map(repr, values))}", entry.place)
        if not values and metric != "latency p99":
            entry.file.fail("is absent", entry.get_key(key))
        for spelling, value in values.items():
            result.add(facts, metric, unit, value, entry.get_key(spelling))
    if accuracy and (quality := next(filter(accuracy.read_number, BYTEMLPERF["qualities"]), None)):
        result.add(
            facts,
            f"quality {quality}",
            "",
            accuracy.read_number(quality),
            accuracy.get_key(quality),
        )
        result.remark(
            f"left out of Accuracy: all but {quality}, which is repeated for each batch size"
        )


TRAINING = "train"
TOLERANCE = Decimal("1e-6")  # of a product of two printed doubles
NO_WARM_UP = "no warm-up run"
MAX_DIGITS = 20  # of a micro-batch and its steps together, so that their product is quick


def _is_optimum(file: SubmittedFile) -> bool:
    """Return whether the file has targets with measurements, alone or under `report`."""
    value = file.value
    report = value.get("report") if isinstance(value, dict) and "config" in value else value
    return isinstance(report, dict) and any(
        isinstance(target, dict) and isinstance(target.get(name), dict) and "unit" in target[name]
        for target in report.values()
        for name in ("latency", "throughput", "energy", "efficiency")
    )


def _read_optimum(result: ReadFile) -> None:
    """Read throughput, latency and energy of each target of a benchmark_report.json, or of
    benchmark.json.
    """
    whole = Section(result.file, result.file.value)
    is_whole = "report" in whole.fields
    config, report = (
        (whole.read_section("config"), whole.read_section("report")) if is_whole else (None, whole)
    )
    if report is None:
        result.file.fail("is null", "report")
    facts, items = _read_config(result, config) if config else ({}, "")
    if config is None:
        result.remark(
            "hand in benchmark.json instead, which has the model, the batch size and the"
            " environment"
        )
    left_out = []
    for target in report.fields:
        section = report.read_section(target)
        if section and target == TRAINING:
            _read_training(result, section, facts, items)
        elif section and target in OPTIMUM["targets"]:
            _read_target(result, section, facts, items, target)
        else:
            left_out.append(target)
    if left_out:
        result.remark(f"left out: {', '.join(left_out)}")


def _read_config(result: ReadFile, config: Section) -> tuple[dict[str, str], str]:
    """Return the facts of the configuration, and the items of one call or step, "" if unknown."""
    facts = {column: config.read(path) for column, path in OPTIMUM["columns"].items()}
    facts["precision"] = next(filter(None, map(config.read, OPTIMUM["precisions"])), "")
    for name, path in OPTIMUM["environment"].items():
        result.state(name, config.read(path))
    environment, scenario = config.read_section("environment"), config.read_section("scenario")
    if environment and config.read("backend.device") == "cuda":
        facts |= _read_gpus(result, environment, config.read("backend.device_ids"))
    items = ""
    if scenario and scenario.read_section("input_shapes"):
        items = facts["batch_size"] = scenario.read("input_shapes.batch_size", "count")
        length = scenario.read("input_shapes.sequence_length", "count")
        facts["conditions"] = f"sequences of {length} tokens" if length else ""
        facts["variant"] = f"SL{length}" if length else ""
    elif scenario and scenario.read_section("training_arguments"):
        micro = facts["micro_batch_size"] = scenario.read(
            "training_arguments.per_device_train_batch_size", "count"
        )
        steps = scenario.read("training_arguments.gradient_accumulation_steps", "count") or "1"
        items = str(int(micro) * int(steps)) if micro and len(micro + steps) < MAX_DIGITS else ""
    if scenario and scenario.read_number("warmup_runs") == "0":
        facts["conditions"] = "; ".join(filter(None, (facts.get("conditions", ""), NO_WARM_UP)))
        result.remark(
            "the tool ran without warm-up (warmup_runs 0): the first runs compile and load; measure"
            " again"
        )
    return facts, items


def _read_gpus(result: ReadFile, environment: Section, device_ids: str) -> dict[str, str]:
    """Return the chip if all GPUs of the machine are of one kind, and their number if the run saw
    one.
    """
    names = environment.fields.get("gpu")
    if (
        not isinstance(names, list)
        or not all(type(name) is str for name in names)
        or len(set(names)) != 1
    ):
        return {}
    is_one = len([device for device in device_ids.split(",") if device]) == 1
    if not is_one:
        result.remark(
            "chip_count: the run saw several GPUs, and the file does not state how many it used"
        )
    return {"chip": names[0], "chip_count": "1" if is_one else ""}


def _read_target(
    result: ReadFile, section: Section, facts: dict[str, str], items: str, target: str
) -> None:
    what = OPTIMUM["targets"][target]
    notes = [
        f"target {target}",
        facts.get("conditions", ""),
        f"latency is the time of {what}, one at a time",
    ]
    row = {**facts, "task": "inference", "conditions": "; ".join(filter(None, notes))}
    latency, throughput = section.read_section("latency"), section.read_section("throughput")
    if latency:
        unit = _check_unit(latency, "s")
        for key, metric in OPTIMUM["latencies"].items():
            if text := latency.read_number(key):
                result.add(row, metric, unit, text, latency.get_key(key))
        result.remark("left out: p95, and the single values")
    if throughput:
        unit = _check_unit(throughput, OPTIMUM["rates"][target])
        text, place = throughput.read_number("value"), throughput.get_key("value")
        # Some versions divide the tokens of `generate` by its time, and call them samples.
        if target != "generate" or _agrees(
            result, text, section.read("latency.mean", "number"), items, place
        ):
            result.add(row, "throughput", unit, text, place)
        else:
            result.remark(
                f"left out: {place}, which is not shown to be the batch size over the mean latency:"
                " some versions count tokens there and write samples"
            )
    energy, efficiency = section.read_section("energy"), section.read_section("efficiency")
    if energy:
        unit, conditions = _check_unit(energy, "kWh"), f"{row['conditions']}; energy of {what}"
        noted = {
            **row,
            "conditions": f"{conditions}: CPU, GPU and memory by codecarbon",
            "power_scope": "machine",
        }
        if text := energy.read_number("total"):
            result.add(noted, "energy", unit, text, energy.get_key("total"))
    if efficiency:
        result.remark("left out: efficiency, which is the batch over the energy")


def _read_training(result: ReadFile, section: Section, facts: dict[str, str], items: str) -> None:
    row = {**facts, "task": "training", "conditions": f"target {TRAINING}, warm-up steps excluded"}
    latency, throughput = section.read_section("latency"), section.read_section("throughput")
    if throughput is None:
        return
    unit, place = _check_unit(throughput, "samples/s"), throughput.get_key("value")
    text = throughput.read_number("value")
    # Some versions divide the samples of all steps by the time of one.
    if _agrees(result, text, latency.read_number("mean") if latency else "", items, place):
        result.add(row, "throughput", unit, text, place)
        result.remark("left out: latency of a training step")
    else:
        result.remark(
            f"left out: {place}, which is not shown to be the samples of one step over its mean"
            " time: some versions count the samples of all steps there"
        )


def _check_unit(section: Section, unit: str) -> str:
    printed = section.read_text("unit")
    if printed != unit:
        section.file.fail(
            f"{printed[:40]!r} is not the unit of this format, {unit}", section.get_key("unit")
        )
    return unit


def _agrees(result: ReadFile, rate: str, mean: str, items: str, place: str) -> bool:
    """Return whether a rate is the items of one call over its mean time."""
    if not (rate and mean and items):
        return False
    product = Decimal(result.to_figure(rate, place)) * Decimal(result.to_figure(mean, place))
    return abs(product / Decimal(items) - 1) <= TOLERANCE


MAX_NAMED = 10  # unknown columns that an error names
NEEDED = ("metric", "value")  # columns that every template has


def _read_template(result: ReadFile) -> None:
    """Read each line as a figure; columns may be missing, their cells stay blank."""
    file, names = result.file, list[str]()
    reader = csv.reader(io.StringIO(file.text, newline=""), strict=True)
    try:
        for cells in reader:
            line = f"line {reader.line_num}"
            if not any(map(str.strip, cells)):
                continue
            if not names:
                names = [name.strip() for name in cells]
                if unknown := [name for name in names if name not in COLUMNS][:MAX_NAMED]:
                    file.fail(describe_unknown_columns(unknown, COLUMNS), line)
                if repeated := next((name for name in names if names.count(name) > 1), None):
                    file.fail(f"column {repeated!r} occurs twice", line)
                if missing := next((name for name in NEEDED if name not in names), None):
                    file.fail(f"the column {missing} is missing", line)
                continue
            if len(cells) != len(names):
                file.fail(f"has {len(cells)} cells, the header {len(names)}", line)
            row = {name: cell.strip() for name, cell in zip(names, cells, strict=True)}
            if names[-1] == "value":
                file.require_line_end(reader.line_num, line)
            for name in NEEDED:
                if not row[name]:
                    file.fail(f"{name} is blank", line)
            place = f": {row['place']}" if row.get("place") else ""
            result.add(row, row["metric"], row.get("unit", ""), row["value"], f"{line}{place}")
    except csv.Error as error:
        file.fail(f"is not CSV: {error}", f"line {reader.line_num}")


ADAPTERS = {
    "bytemlperf": Adapter(
        lambda file: (
            isinstance(file.value, dict)
            and "Model" in file.value
            and not BATCHED.isdisjoint(file.value)
        ),
        _read_bytemlperf,
    ),
    "optimum-benchmark": Adapter(_is_optimum, _read_optimum),
    "csv-template": Adapter(
        lambda file: (
            set(NEEDED) <= set(map(str.strip, file.text.lstrip().partition("\n")[0].split(",")))
        ),
        _read_template,
    ),
}
