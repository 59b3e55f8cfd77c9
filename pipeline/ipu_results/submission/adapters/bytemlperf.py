"""Read a report of ByteMLPerf (byte_infer_perf/general_perf), the `result-*.json` of one network on one backend."""

from __future__ import annotations

import re

from ipu_results.submission.adapters.files import Draft, ReadFile, Section, SubmittedFile

NAME = "bytemlperf"
PRINTED_MODEL = re.compile(r"(.+)-(?:TORCH|TF|ONNX)-FP32", re.IGNORECASE)
# The networks of the suite's model zoo, by the names and variants that the record has for them.
NETWORKS = {
    "ALBERT": ("ALBERT-Base", "SL384"),
    "BERT": ("BERT-Base", "SL384"),
    "CLIP": ("CLIP text encoder", "text encoder SL77"),
    "CONFORMER-ENCODER": ("Conformer encoder", "64x512"),
    "DEBERTA": ("DeBERTa-Base", "SL384"),
    "RESNET50": ("ResNet-50 v1.5", "224x224"),
    "ROBERTA": ("RoBERTa-Base", "SL384"),
    "ROFORMER": ("RoFormer", "SL1024"),
    "SWIN-LARGE": ("Swin-Large (384)", "384x384"),
    "VIDEOBERT": ("VideoBERT", "224x224, 100 texts of 77"),
    "WIDEDEEP": ("Wide & Deep", ""),
}
QUALITIES = ("Top-1", "F1 Score", "Mean Diff")  # the first that a report has is its quality
BATCH, SPARSITY = "BS", "Sparsity Ratio"
SPEEDS = (("QPS", "throughput", "QPS"), ("AVG Latency", "latency", "ms"), ("P99 Latency", "latency p99", "ms"))
LATENCY = "latency is the time of one call of a batch; calls in flight not stated"


def is_readable(file: SubmittedFile) -> bool:
    """Return whether the file has the keys of a report."""
    value = file.value
    return isinstance(value, dict) and "Model" in value and ("Performance" in value or "Graph Compile" in value)


def read_report(file: SubmittedFile) -> ReadFile:
    """Read throughput, latency and quality of each batch size. Raises SubmissionError."""
    report, draft = Section(file, file.value), Draft(file)
    printed = report.read_text("Model")
    if not printed:
        file.fail("is absent or blank", "Model")
    match = PRINTED_MODEL.fullmatch(printed)
    model, variant = NETWORKS.get((match[1] if match else printed).upper(), (printed, ""))
    compiled = report.read_section("Graph Compile")
    executed = report.read_text("Execution Date").split(" ")[0]
    sparsity = str(compiled.fields.get(SPARSITY, "")) if compiled else ""
    conditions = [
        f"model {printed}",
        f"report of {executed}" if executed else "",
        f"sparsity ratio {sparsity}" if sparsity else "",
        LATENCY,
    ]
    facts = {
        "model": model,
        "variant": variant,
        "dataset": report.read_text("Dataset"),
        "task": "inference",
        "chip_count": report.read_count("Device Count"),
        "precision": compiled.read_text("Compile Precision") if compiled else "",
        "conditions": "; ".join(filter(None, conditions)),
    }
    for key in ("Backend", "Host Info", "Version", "Execution Date"):
        draft.state(key, report.read_text(key))
    sizes: set[str] = set()
    for entry in report.read_sections("Performance"):
        size = entry.read_count(BATCH)
        if not size:
            file.fail("is absent", entry.get_key(BATCH))
        if size in sizes:
            file.fail(f"batch size {size} occurs twice", entry.get_key(BATCH))
        sizes.add(size)
        _add_figures(draft, entry, report.read_section("Accuracy"), {**facts, "batch_size": size})
    draft.remark(
        "latency: write `latency of a batch` as the metric if one client thread called, `latency among several` if "
        "several did, and their number in `conditions`"
    )
    if variant.startswith("SL"):
        draft.remark(f"variant: write `{variant} packed` if sequences were packed")
    return draft.finish(NAME)


def _add_figures(draft: Draft, entry: Section, accuracy: Section | None, facts: dict[str, str]) -> None:
    for key, metric, unit in SPEEDS:
        spellings = {spelling: entry.read_number(spelling) for spelling in dict.fromkeys((key, key.replace(" ", "_")))}
        values = {spelling: value for spelling, value in spellings.items() if value}
        if len(values) > 1:
            entry.file.fail(f"is there twice, as {' and '.join(map(repr, values))}", entry.place)
        if not values and key != "P99 Latency":
            entry.file.fail("is absent", entry.get_key(key))
        for spelling, value in values.items():
            draft.add(facts, metric, unit, value, entry.get_key(spelling))
    if accuracy is None:
        return
    quality = next((key for key in QUALITIES if accuracy.read_number(key)), None)
    if quality:
        draft.add(facts, f"quality {quality}", "", accuracy.read_number(quality), accuracy.get_key(quality))
        draft.remark(f"left out of Accuracy: all but {quality}, which is repeated for each batch size")
