"""Score the present model on every set of measurements: error, bias and coverage of the band, set
by set.

`python -m benchmarks.emulator scores` prints them, and with `--out DIR` writes every row, for other
simulators to use.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
from ipu_results.emulator.codelets import estimate_amp_1x1
from ipu_results.emulator.frontend import read_program
from ipu_results.emulator.network import load_sized_network
from ipu_results.emulator.operators import (
    Convolution,
    Elementwise,
    Gemm,
    Operator,
    Program,
    Rearrangement,
)
from ipu_results.emulator.prediction import MS, predict
from ipu_results.emulator.schedule import estimate_copy, schedule
from ipu_results.emulator.settings import load_target_file, select_protocol
from ipu_results.emulator.split import ConvolutionShape, plan_split
from ipu_results.emulator.target import load_target
from ipu_results.emulator.training import TrainingSetup, extend_target, predict_training

from benchmarks.emulator import training
from benchmarks.emulator.accuracy import load_validation
from benchmarks.emulator.blind.predictions import (
    BATCHES,
    CONVOLUTIONS,
    FOLDER,
    YOLOV4,
    build_layer,
    choose_padding,
    load_machine,
    read_shapes,
)
from benchmarks.emulator.blind.scoring import read_figures
from benchmarks.emulator.blind.scoring_yolov4 import LATENCY
from benchmarks.emulator.blind.scoring_yolov4 import read_figures as read_yolov4
from benchmarks.emulator.blind.yolov4 import build_yolov4
from benchmarks.emulator.scoring import ScoredRow
from benchmarks.emulator.validation import TrainingScore
from benchmarks.processes import ROOT

INDEPENDENT = ROOT / "raw" / "independent"
VERTEX, SIGLIP = "tessellate-peak-flops.csv", "ipu-stack-siglip.csv"
TILES, BOW_CLOCK, MACS_OF_ROW = 1472, 1.85e9, 16 * 16
# as the vendor's configuration
RESNET_CUTS = ("stage1.0", "stage1.2", "stage2.0", "stage2.2", "stage3.0", "stage3.3")
TAMU_BATCH = 1920  # of a step, assumed: that of the vendor's configurations for 4 and 16 chips
ROWS = Path(__file__).parent / "validation.csv"
FP8 = Path(__file__).parent / "c600-fp8.toml"
PATTERN = re.compile(r"(\w+)=(\d+)")


@dataclass(frozen=True, slots=True)
class Score:
    """A measurement and its prediction, both in `unit`."""

    set: str
    network: str
    row: str
    unit: str
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """Return the signed share of the measured figure.

        All figures are times, so less than 0 is too fast.
        """
        return self.predicted / self.measured - 1

    @property
    def ratio(self) -> float:
        return self.measured / self.predicted

    @property
    def kind(self) -> str | None:
        """Return the kind of work, whose rows have one band, or None for a row that no band is for."""
        if self.set in INFERENCE:
            return "inference"
        if self.set in TRAINING:
            text = self.network.startswith(("bert", "gpt2", "vit"))
            return f"training of {'transformers' if text else 'convolutions'}"
        return KINDS.get(self.set)


INFERENCE = ("resnext", "ten", "57 by second reading", "c600")
TRAINING = (
    "train",
    "train-large",
    "train-weak",
    "tamu one chip",
    "tamu pods",
    "caraml gpt-117m",
    "caraml resnet50",
)
KINDS = {"citadel": "single layers", "train-host-fed": "training fed by the host"}
NOMINAL, FEWEST, ROUNDING = 0.8, 5, 1e-9


def fit_band(ratios: Sequence[float]) -> tuple[float, float]:
    """Return the order statistics that hold NOMINAL of further rows, whatever their distribution
    is.
    """
    ordered, tail = sorted(ratios), (1 - NOMINAL) / 2
    low = math.floor((len(ordered) + 1) * tail + ROUNDING) - 1
    return ordered[max(0, low)], ordered[min(len(ordered) - 1, len(ordered) - 1 - low)]


def check_coverage(scores: Sequence[Score]) -> dict[Score, bool]:
    """Check for each row whether the band of its kind, made without rows of its network, holds it."""
    held = {}
    for score in scores:
        others = [
            each.ratio
            for each in scores
            if each.kind == score.kind and each.network != score.network
        ]
        if score.kind and len(others) >= FEWEST:
            low, high = fit_band(others)
            held[score] = low <= score.ratio <= high
    return held


def format_bands(scores: Sequence[Score]) -> str:
    """Return the text of `bands.toml`: of each kind the band of all rows, and what it held of
    networks left out.
    """
    held = check_coverage(scores)
    lines = [
        "# Made by `python -m benchmarks.emulator bands`: measured over predicted time. Not to be"
        " edited."
    ]
    for kind in dict.fromkeys(score.kind for score in scores if score.kind):
        members = [score for score in scores if score.kind == kind]
        low, high = fit_band([each.ratio for each in members])
        checked = [held[each] for each in members if each in held]
        lines += [
            "",
            f'["{kind}"]',
            f"low = {low:.3f}",
            f"high = {high:.3f}",
            f"rows = {len(members)}",
        ]
        lines += [f"held_out = {len(checked)}", f"covered = {mean(checked):.3f}"]
    return "\n".join(lines) + "\n"


def read_lines(name: str, folder: Path = INDEPENDENT) -> list[dict[str, str]]:
    with (folder / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def parse_number(text: str) -> float:
    return float(text.replace(",", ""))


def score_vertex() -> Iterator[Score]:
    """Score the runs of the central vertex on one tile. The printed rate gives whole cycles."""
    target = load_target("bow-2000")
    for line in read_lines(VERTEX):
        rows = int(dict(PATTERN.findall(line["shape"]))["n"])
        cycles = round(2 * rows * MACS_OF_ROW * TILES * BOW_CLOCK / (float(line["value"]) * 1e12))
        single = np.ones(1)
        predicted = float(
            estimate_amp_1x1(target, np.array([float(rows)]), single, single, single)[0]
        )
        yield Score("vertex", "vertex", f"n={rows}", "cycle", cycles, predicted)


def score_products() -> Iterator[Score]:
    """Score the six matrix products that the SDK split itself, in fp16 and again in FP8."""
    machines = {
        "FP16": ("sdk-products", load_target("m2000")),
        "FP8": ("sdk-products fp8", load_target_file(FP8)),
    }
    for line in sorted(read_lines(SIGLIP), key=lambda each: -len(each["precision"])):
        if line["operation"].startswith("matrix product"):
            name, target = machines[line["precision"]]
            size = {key: int(value) for key, value in PATTERN.findall(line["shape"])}
            shape = ConvolutionShape(
                1,
                size.get("groups", 1),
                size["k"],
                size["n"],
                size["m"],
                1,
                in_rows=size["m"],
                in_columns=1,
            )
            cycles = parse_number(line["value"])
            yield Score(
                name,
                "siglip",
                line["operation"],
                "cycle",
                cycles,
                plan_split(shape, target).compute,
            )


BLOCKS, TOKENS, WIDTH, HEADS, HIDDEN = 27, 729, 1152, 16, 4304


def build_siglip() -> Program:
    """Build the profiled transformer by sizes: the patches, 27 blocks with one product for Q, K and
    V, no pooling.
    """
    patches = Convolution("patches", 1, 1, 3, WIDTH, 384, 384, 14, 14, 14, 14, bias=True)
    operators: list[Operator] = [patches]
    for at in range(BLOCKS):
        operators += _list_block(f"layer{at}")
    sources = tuple((at - 1,) if at else () for at in range(len(operators)))
    return Program("siglip", tuple(operators), sources, (), (), (len(operators) - 1,), 0)


def _list_block(name: str) -> list[Operator]:
    head = WIDTH // HEADS
    scores = Gemm(f"{name}.scores", HEADS, TOKENS, head, TOKENS, constant=False)
    return [
        Elementwise(f"{name}.norm1", "layernorm", TOKENS * WIDTH),
        Gemm(f"{name}.qkv", 1, TOKENS, WIDTH, 3 * WIDTH, bias=True),
        Rearrangement(f"{name}.heads", "transpose", TOKENS * WIDTH * 3),
        scores,
        Elementwise(f"{name}.softmax", "softmax", scores.elements, TOKENS),
        Gemm(f"{name}.values", HEADS, TOKENS, TOKENS, head, constant=False),
        Rearrangement(f"{name}.join", "transpose", TOKENS * WIDTH),
        Gemm(f"{name}.proj", 1, TOKENS, WIDTH, WIDTH, bias=True),
        Elementwise(f"{name}.add1", "add", TOKENS * WIDTH),
        Elementwise(f"{name}.norm2", "layernorm", TOKENS * WIDTH),
        Gemm(f"{name}.up", 1, TOKENS, WIDTH, HIDDEN, bias=True),
        Elementwise(f"{name}.gelu", "gelu", TOKENS * HIDDEN),
        Gemm(f"{name}.down", 1, TOKENS, HIDDEN, WIDTH, bias=True),
        Elementwise(f"{name}.add2", "add", TOKENS * WIDTH),
    ]


def score_blocks() -> Iterator[Score]:
    """Score what the SDK put between the products, and the whole model, in cycles of the fp16
    recording.
    """
    target = load_target("m2000")
    cycles = {line["operation"]: parse_number(line["value"]) for line in read_lines(SIGLIP)}
    steps = schedule(build_siglip(), target).steps
    softmax = next(step for step in steps if step.kind == "softmax")
    copied = estimate_copy(HEADS * TOKENS, TOKENS, target)
    sets = {
        "copy of scores before softmax": copied,
        "softmax": softmax.compute - copied,
        "exchange of scores before softmax": (
            HEADS * TOKENS * TOKENS * 2 / target.tiles / target["exchange.bytes"]
        ),
    }
    for name, predicted in sets.items():
        yield Score("sdk-sets", "siglip", name, "cycle", cycles[name], predicted)
    whole = next(
        line
        for line in read_lines(SIGLIP)
        if "FP8-weight" in line["conditions"] and line["statistic"] == "second inference"
    )
    predicted = sum(step.cycles + step.supersteps * target["superstep.cycles"] for step in steps)
    yield Score(
        "sdk-model", "siglip", "fp16 compute", "cycle", parse_number(whole["value"]), predicted
    )


def score_inference() -> Iterator[Score]:
    """Score the published rows on the time of a batch.

    The band is that of the latency, where one was printed.
    """
    for scored in load_validation().scored:
        name = {"calibration": "c2 (fit)", "honest": "57 as printed"}.get(
            scored.row.set, scored.row.set
        )
        yield _score_row(scored, name)
        if scored.row.set == "honest":
            yield _score_row(scored.second or scored, "57 by second reading")


def _score_row(scored: ScoredRow, name: str) -> Score:
    row = scored.row
    label = f"{row.selector.target} {row.selector.framework} batch {row.batch_size} {row.variant}".strip()
    return Score(name, row.selector.network, label, "ms", row.seconds * MS, scored.seconds * MS)


def score_training() -> Iterator[Score]:
    for each in training.load_scores():
        yield score_step(each)


def score_step(each: TrainingScore) -> Score:
    label = f"{each.row.target} {each.row.framework} {each.prediction.chips} chips {each.row.variant}".strip()
    network = each.row.name.removesuffix("-split").removesuffix("-pretraining")
    return Score(
        each.row.set, network, label, "ms", each.row.seconds * MS, each.prediction.step_s * MS
    )


def score_tamu() -> Iterator[Score]:
    """Score ResNet-50 of table 3: one chip at seven micro-batches, then 2 to 64 chips."""
    for line in read_lines("tamu-aces-2022.csv"):
        if (
            "table 3" in line["place"]
            and line["metric"] == "throughput"
            and line["chip"] == "GC200"
        ):
            chips, micro = int(line["chip_count"]), int(line["micro_batch_size"])
            accumulation = max(2, round(TAMU_BATCH / micro / chips))
            setup = replace(_setup_resnet(micro, chips, accumulation), norm_span=min(chips, 2))
            name = "tamu one chip" if chips == 1 else "tamu pods"
            yield _score_setup(
                name,
                "resnet50",
                setup,
                parse_number(line["value"]),
                f"{chips} chips, {micro}",
            )


def score_caraml() -> Iterator[Score]:
    """Score both networks of CARAML over batch sizes: ResNet-50 on one chip, GPT-117M on a pipeline
    of four.
    """
    for line in read_lines("caraml-2024.csv"):
        if (
            line["metric"] != "throughput"
            or line["chip"] != "GC200"
            or "table" not in line["place"]
        ):
            continue
        batch = int(line["batch_size"])
        micro = int(line["micro_batch_size"])
        rate = parse_number(line["value"])
        if line["model"] == "ResNet-50":
            setup = _setup_resnet(micro, 1, batch // micro)
            network = "resnet50"
            name = "caraml resnet50"
        else:
            layers = (0, 4, 4, 4)
            setup = TrainingSetup(
                micro,
                1,
                batch,
                "layer",
                (0.15,) * 4,
                True,
                layers=layers,
                head="first",
                framework="PyTorch",
            )
            network, name = "gpt2-split", "caraml gpt-117m"
        yield _score_setup(name, network, setup, rate, f"batch {batch}")


def _setup_resnet(micro: int, replicas: int, accumulation: int) -> TrainingSetup:
    cuts = tuple(f"{cut}.relu" for cut in RESNET_CUTS)
    return TrainingSetup(
        micro, replicas, accumulation, "stage", (0.15,), input_bits=8, cut_after=cuts, one_chip=True
    )


def _score_setup(name: str, network: str, setup: TrainingSetup, rate: float, row: str) -> Score:
    target = extend_target(load_target("m2000"))
    step = predict_training(load_sized_network(network, 1024), target, setup).step_s
    seconds = setup.micro_batch * setup.replicas * setup.accumulation / rate
    return Score(name, network.removesuffix("-split"), row, "ms", seconds * MS, step * MS)


# Rows of a C600 whose host is hidden, so that the time of the chip is the time between two batches,
# and rows of one question after another, whose time holds the host: set, document, model,
# condition, network, length of sequences.
POPRT, BYTEMLPERF = "graphcore/poprt-1.5.csv", "independent/bytemlperf-c600.csv"
ON_CHIP = "data generated on the IPU"
C600_ROWS = (
    ("c600", POPRT, "ResNet-50 v1.5", "1000 calls", "resnet50-folded", 0),
    ("c600", BYTEMLPERF, "ResNet-50 v1.5", "4 client threads", "resnet50-folded", 0),
    ("c600", POPRT, "BERT-Base", "1000 calls", "bert-base", 128),
    ("c600", BYTEMLPERF, "BERT-Base", "one client thread", "bert-base", 384),
    ("c600 on-chip images", POPRT, "ResNet-50 v1.5", ON_CHIP, "resnet50-folded", 0),
    ("c600 squad, host in it", POPRT, "BERT-Base", "row bert_", "bert-base", 256),
)


def score_c600() -> Iterator[Score]:
    """Score ResNet-50 and BERT-Base on a C600 on the chip's time alone: its host path has no
    protocol.

    A row of FP8 is in a set of its own and is predicted on the machine of FP8, which differs in one
    constant.
    """
    machines = {"": load_target("c600"), " fp8": load_target_file(FP8)}
    for set_, document, model, condition, network, sequence in C600_ROWS:
        for line in read_lines(document, ROOT / "raw"):
            # One thread's throughput is of two batches in the time of its latency, which is taken
            # instead.
            metric = "latency of a batch" if condition.startswith("one client") else "throughput"
            if (line["model"], line["metric"]) != (model, metric) or condition not in line[
                "conditions"
            ]:
                continue
            batch = int(line["batch_size"])
            fp8 = " fp8" if line["precision"].lower() == "fp8" else ""
            # A single item is bound by the host's calls; PopRT computes in fp32 where its table
            # says so.
            single = batch < 2 and set_ == "c600"
            if (
                "packed" in line["variant"]
                or single
                or (set_ != "c600" and line["precision"] == "fp32")
            ):
                continue
            program = load_sized_network(network, sequence or 128)
            (prediction,) = predict(program, machines[fp8], [batch], "lowest-latency")
            figure = parse_number(line["value"])
            measured = figure if line["unit"] == "ms" else 1000 * batch / figure
            label = (
                f"{document} batch {batch} {line['precision']}"
                f" {line['conditions'] if set_ != 'c600' else ''}"
            )
            yield Score(
                f"{set_}{fp8}", network, label.strip(), "ms", measured, prediction.device_ms
            )


def score_convolutions() -> Iterator[Score]:
    """Score the convolution layers of a GC2, whose data lie on the chip."""
    figures, shapes = read_figures(), read_shapes(CONVOLUTIONS)
    machine = load_machine(CONVOLUTIONS, "half")
    path = select_protocol("paper", machine)
    for shape, following in pairwise([*shapes, {"network": None}]):
        size = following["input_size"] if following["network"] == shape["network"] else None
        padding = choose_padding(shape["kernel"], shape["input_size"], shape["stride"], size)
        model = build_layer(
            padding=padding, **{key: value for key, value in shape.items() if key != "network"}
        )
        for batch in BATCHES:
            tflops = figures.get((shape["network"], shape["layer"], batch))
            program = read_program(model, batch)
            if tflops is None or not program.macs:
                continue
            (prediction,) = predict(partial(read_program, model), machine, [batch], path)
            label, measured = f"{shape['layer']} batch {batch}", 2 * program.macs / tflops / 1e9
            yield Score("citadel", shape["network"], label, "ms", measured, prediction.device_ms)


def score_yolov4() -> Iterator[Score]:
    """Score YOLOv4-P5 by latency of a call and by throughput.

    What the source itself contradicts is set apart.

    Those are set-ups that two of its files print, and the series of a file whose set-up in common
    with another file takes CONTRADICTED times as long there.
    """
    rows = [
        (key, figure, value)
        for key, figure, value in read_yolov4()
        if not (figure == LATENCY and int(key[1]) > 1)
    ]
    times = {
        (figure, key): value if figure == LATENCY else 1000 * int(key[2]) / value
        for key, figure, value in rows
    }
    setups: dict[tuple[Any, ...], list[float]] = {}
    for (figure, key), measured in times.items():
        setups.setdefault((figure, key[1:]), []).append(measured)
    contradicted = {
        (figure, key[0], key[3], key[4])
        for (figure, key), measured in times.items()
        if measured > CONTRADICTED * min(setups[figure, key[1:]])
    }
    for (figure, key), measured in times.items():
        file, iterations, batch, size, precision = key
        machine = load_machine(YOLOV4, precision)
        path = select_protocol("poptorch-call", load_target("m2000"))
        # The host calls once for all iterations. Images are sent as 8 bits in both precisions:
        # `uint_io` of config.py.
        calls = {name: getattr(path, name) / int(iterations) for name in ("per_call", "after_call")}
        path = replace(path, instances=1, **calls)
        model = partial(_read_yolov4, int(size))
        (prediction,) = predict(model, machine, [int(batch)], path)
        suspect = (figure, file, size, precision) in contradicted
        mark = (
            ", printed twice"
            if len(setups[figure, key[1:]]) > 1
            else ", contradicted series"
            if suspect
            else ""
        )
        if not mark and figure != LATENCY and file == AFTER_CALL_FILE:
            mark = ", in view"
        label = f"{file} {size} batch {batch} {precision} {iterations} iterations"
        timing = prediction.timing
        predicted = timing.latency if figure == LATENCY else timing.period
        yield Score(f"yolov4 {figure}{mark}", "yolov4-p5", label, "ms", measured, predicted * MS)


CONTRADICTED = 1.5
# whose throughputs less latencies give `after_call` and `after_byte`
AFTER_CALL_FILE = "imgX_b1_fp16.csv"


def _read_yolov4(size: int, batch: int) -> Program:
    return read_program(build_yolov4(size), batch)


BLIND_DECODING = {"decoding, blind before": "decoding.csv", "decoding, blind": "decoding-2.csv"}


def score_decoding() -> Iterator[Score]:
    """Score both committed predictions of decoding, which were written before the figures were
    read, by throughput.
    """
    lines = read_lines("graphcore/poptransformer.csv", ROOT / "raw")
    measured = [parse_number(line["value"]) for line in lines if line["metric"] == "throughput"]
    for name, file in BLIND_DECODING.items():
        shapes = [line for line in read_lines(file, FOLDER) if line["metric"] == "throughput"]
        for shape, rate in zip(shapes, measured, strict=True):
            label = (
                f"{shape['machine']} batch {shape['batch'] or 1}, {shape['input_length']} of"
                f" {shape['max_length']}"
            )
            times = (MS / rate, MS / float(shape["predicted"]))
            yield Score(name, shape["model"], label, "ms/token", *times)


def score_all() -> list[Score]:
    """Score every set with the present model."""
    sets = (
        score_vertex,
        score_products,
        score_inference,
        score_training,
        score_tamu,
        score_caraml,
        score_c600,
        score_convolutions,
        score_yolov4,
        score_blocks,
        score_decoding,
    )
    return [score for score_set in sets for score in score_set()]


def group_sets(scores: Sequence[Score]) -> dict[str, list[Score]]:
    sets: dict[str, list[Score]] = {}
    for score in scores:
        sets.setdefault(score.set, []).append(score)
    return sets


def tabulate_scores(scores: Sequence[Score]) -> list[tuple[str, ...]]:
    """Return a row for each set: n, median, mean and maximum error, share of rows too fast, and
    coverage.
    """
    table, held = [], check_coverage(scores)
    for name, members in group_sets(scores).items():
        sizes = [abs(each.error) for each in members]
        banded = [held[each] for each in members if each in held]
        fast = [each.error < 0 for each in members]
        shares = (f"{100 * value:.1f}" for value in (median(sizes), mean(sizes), max(sizes)))
        table.append(
            (name, str(len(members)), *shares, format_interval(fast), format_interval(banded))
        )
    return table


def format_interval(flags: Sequence[bool]) -> str:
    """Return the share in percent with its binomial interval of 95 % (Wilson), which takes rows as
    independent.
    """
    if not (count := len(flags)):
        return ""
    share, z = mean(flags), 1.96
    middle = share + z * z / (2 * count)
    half = z * math.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2)
    low, high = ((middle + sign * half) / (1 + z * z / count) for sign in (-1, 1))
    return f"{100 * share:.0f} ({100 * low:.0f} to {100 * high:.0f})"


HEADER = ("set", "rows", "median %", "mean %", "max %", "too fast % (95 %)", "in band % (95 %)")


def read_rows(path: Path = ROWS) -> list[Score]:
    """Read what `write_rows` wrote."""
    with path.open(encoding="utf-8", newline="") as file:
        _, *lines = csv.reader(file)
    return [
        Score(a, b, c, d, float(measured), float(predicted))
        for a, b, c, d, measured, predicted, _ in lines
    ]


def write_rows(scores: Sequence[Score], path: Path) -> None:
    """Write every row as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*(field.name for field in fields(Score)), "error"])
        writer.writerows([*_round(asdict(each)), f"{each.error:.4f}"] for each in scores)


def _round(record: Mapping[str, Any]) -> list[Any]:
    return [f"{value:.6g}" if isinstance(value, float) else value for value in record.values()]
