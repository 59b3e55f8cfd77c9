"""Make the rows that the emulator is scored on: every figure of the record that can be built.

Which networks of the record are not built is in `data/record.toml`, each with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from ipu_results.emulator.codelets import Grid, estimate_amp_1x1, estimate_reduction
from ipu_results.emulator.frontend import read_program
from ipu_results.emulator.network import load_sized_network
from ipu_results.emulator.operators import Program, shape_product
from ipu_results.emulator.prediction import MS
from ipu_results.emulator.schedule import estimate_copy, schedule
from ipu_results.emulator.settings import load_target_file, select_protocol
from ipu_results.emulator.split import plan_split
from ipu_results.emulator.target import PLATFORMS, Target, load_target
from ipu_results.emulator.training import (
    TrainingSetup,
    extend_target,
    is_host_bound,
    predict_training,
)
from ipu_results.kit.sql import run_query
from ipu_results.record.store.query import open_warehouse

from benchmarks.emulator import training
from benchmarks.emulator.architectures import BUILDERS, build_siglip
from benchmarks.emulator.baselines import (
    Read,
    Times,
    interpolate,
    predict_step_times,
    predict_times,
)
from benchmarks.emulator.blind.predictions import (
    BATCHES,
    CONVOLUTIONS,
    FOLDER,
    YOLOV4,
    build_layer,
    choose_padding,
    load_machine,
    read_lines,
    read_shapes,
)
from benchmarks.emulator.blind.scoring import read_figures
from benchmarks.emulator.blind.scoring_yolov4 import LATENCY
from benchmarks.emulator.blind.scoring_yolov4 import read_figures as read_yolov4
from benchmarks.emulator.blind.yolov4 import build_yolov4
from benchmarks.emulator.rows import load_rows, read_toml
from benchmarks.emulator.scores import Score
from benchmarks.processes import ROOT

INFERENCE = "inference"
TRAINING = "training"
OPERATORS = "operators"
RAW = ROOT / "raw"
PAGE = "graphcore-performance-2023-07-04"
FP8 = ROOT / "benchmarks" / "emulator" / "c600-fp8.toml"
PATTERN = re.compile(r"(\w+)=(\d+)")
PERIOD: Read = attrgetter("period")
DEVICE: Read = attrgetter("device")
CALL: Read = attrgetter("latency")


def read_raw(name: str) -> list[dict[str, str]]:
    return read_lines(RAW / name)


def parse_number(text: str) -> float:
    return float(text.replace(",", ""))


def _read_sizes(line: Mapping[str, str]) -> dict[str, int]:
    return {key: int(value) for key, value in PATTERN.findall(line["shape"])}


def _make(times: Times, measured: float, kind: str, **labels: Any) -> Score:
    """Make a row from seconds; its figures are in milliseconds."""
    figures = (measured, times.emulator, times.two, times.three)
    measured_ms, predicted, two, three = (each * MS for each in figures)
    return Score(
        kind=kind,
        unit="ms",
        measured=measured_ms,
        predicted=predicted,
        two=two,
        three=three,
        **labels,
    )


TILES = 1472
BOW_CLOCK = 1.85e9
MACS_OF_ROW = 16 * 16


def score_vertex() -> Iterator[Score]:
    """Score the runs of the central vertex on one tile. The printed rate gives whole cycles."""
    target = load_target("bow-2000")
    for line in read_raw("independent/tessellate-peak-flops.csv"):
        rows = _read_sizes(line)["n"]
        rate = float(line["value"]) * 1e12
        cycles = float(round(2 * rows * MACS_OF_ROW * TILES * BOW_CLOCK / rate))
        one = np.ones(1)
        share = Grid(np.array([float(rows)]), one, one, one, one, one, one)
        (predicted,) = estimate_amp_1x1(target, share)
        yield Score(
            OPERATORS,
            "vertex",
            "tessellate-peak-flops",
            "vertex",
            f"n={rows}",
            "cycle",
            cycles,
            float(predicted),
        )


def score_products() -> Iterator[Score]:
    """Score the matrix products that the SDK split itself: six in fp16 and again in FP8, cycles
    alone, and one in fp32.
    """
    machines = {
        "FP16": ("sdk-products", load_target("m2000")),
        "FP8": ("sdk-products fp8", load_target_file(FP8)),
    }
    for line in read_raw("independent/ipu-stack-siglip.csv"):
        if line["operation"].startswith("matrix product"):
            name, target = machines[line["precision"]]
            sizes = _read_sizes(line)
            shape = shape_product(sizes.get("groups", 1), sizes["m"], sizes["k"], sizes["n"])
            yield Score(
                OPERATORS,
                name,
                "ipu-stack-siglip",
                "siglip",
                line["operation"],
                "cycle",
                parse_number(line["value"]),
                plan_split(shape, target).compute,
            )
    for line in read_raw("independent/heidelberg-matmul-2023.csv"):
        if line["device"] == "GC200" and line["shape"]:
            yield _score_square(line)


def _score_square(line: Mapping[str, str]) -> Score:
    side = int(line["shape"].split("x")[0])
    target = load_machine(YOLOV4, "single")
    plan = plan_split(shape_product(1, side, side, side), target)
    cycles = plan.cycles + plan.supersteps * target["superstep.cycles"]
    measured = 2 * side**3 / (parse_number(line["value"]) * 1e12)
    return Score(
        OPERATORS,
        "square product fp32",
        "heidelberg-matmul-2023",
        "product",
        line["shape"],
        "ms",
        measured * MS,
        cycles / target["clock"] * MS,
    )


COLLECTIVES = ("point-to-point transfer", "broadcast", "gather", "scatter", "all-to-all")
KIB = 1024
WORD = 4  # bytes of the smallest message and of a summed operand
GIGA = 1e9


def score_collectives() -> Iterator[Score]:
    """Score the exchanges and sums on one GC2: every latency, and every rate, as the time of all
    bytes.

    An exchange is one superstep, in which the busiest tile sends or receives all that is its own.
    """
    target = load_target("c2")
    for line in read_raw("independent/citadel-2019.csv"):
        one_chip = line["device_count"] == "1" and line["conditions"] != "tile to itself"
        name = line["operation"]
        is_rate = line["metric"] == "bandwidth" and line["unit"] == "GB/s"
        whole = line["metric"] == "latency" or is_rate
        known = name in COLLECTIVES or (name == "reduction" and not is_rate)
        if not (one_chip and whole and known) or "per" in line["statistic"]:
            continue
        sizes = _read_sizes(line)
        size = sizes.get("message_kib", 0) * KIB or sizes.get("message_bytes", WORD)
        parts = sizes.get("transfers", sizes.get("tiles", 1))
        figure = parse_number(line["value"])
        if is_rate and "message" not in line["shape"]:
            size = MEGABYTE  # the rate is printed as the limit of large messages
        if is_rate:
            measured = parts * size / (figure * GIGA)
        else:
            measured = figure / 1e6
        if name == "reduction":
            cycles = _sum_operands(sizes, target)
        else:
            busiest = _count_busiest(name, sizes, parts, size)
            # Neighbours that receive the same data share their speed, as in a product.
            paired = name == "broadcast" and parts % 2 == 0
            rate = target["exchange.pair_bytes" if paired else "exchange.bytes"]
            cycles = busiest / rate + target["superstep.cycles"]
        yield Score(
            OPERATORS,
            f"citadel {name}, {line['metric']}",
            "citadel-2019",
            name,
            f"{line['shape']} {line['place']}",
            "µs",
            measured * 1e6,
            cycles / target["clock"] * 1e6,
        )


MEGABYTE = 1_000_000


def _count_busiest(name: str, sizes: Mapping[str, int], parts: int, size: int) -> int:
    """Return the bytes of the tile that sends or receives most."""
    if name in ("gather", "scatter"):
        return parts * size
    return sizes["tiles"] * size if name == "all-to-all" else size


def _sum_operands(sizes: Mapping[str, int], target: Target) -> float:
    """Return the cycles in which every tile sums its operands, and tiles sum what they have."""
    each = sizes["operands_per_tile"]
    vectors = -(-each // (target["vector"] / 2))  # of fp32
    cycles = target["superstep.cycles"] + vectors * target["globalpool.cycles"]
    depth = np.array([float(sizes["tiles"])])
    reduced, stages, received = estimate_reduction(target, depth, np.ones(1))
    moved = received * WORD / target["exchange.bytes"]
    steps = np.where(stages > 0, stages + 1, 0) * target["superstep.cycles"]
    return float(cycles + (reduced + moved + steps)[0])


def score_blocks() -> Iterator[Score]:
    """Score what the SDK put between the products of SigLIP, and the whole model."""
    target = load_target("m2000")
    lines = read_raw("independent/ipu-stack-siglip.csv")
    cycles = {line["operation"]: parse_number(line["value"]) for line in lines}
    steps = schedule(build_siglip(1), target).steps
    softmax = next(step for step in steps if step.kind == "softmax")
    copied = estimate_copy(16 * 729 * 729, target)
    scores = 16 * 729 * 729
    sets = {
        "copy of scores before softmax": copied,
        "softmax": softmax.compute - copied,
        "exchange of scores before softmax": (
            scores * target["element.bytes"] / target.tiles / target["exchange.bytes"]
        ),
    }
    document = "ipu-stack-siglip"
    for name, predicted in sets.items():
        yield Score(
            OPERATORS, "sdk-sets", document, "siglip", name, "cycle", cycles[name], predicted
        )
    whole = next(
        line
        for line in lines
        if "FP8-weight" in line["conditions"] and line["statistic"] == "second inference"
    )
    path = select_protocol("lowest-latency", load_target("c600"))
    seconds = parse_number(whole["value"]) / target["clock"]
    times = predict_times(build_siglip, replace(target, chips=1), 1, path, DEVICE)
    yield _make(
        times,
        seconds,
        INFERENCE,
        set="sdk-model",
        document=document,
        network="siglip",
        row="fp16 compute, at the clock of a GC200",
    )


def score_inference() -> Iterator[Score]:
    """Score the published rows on the time of a batch, doubtful ones by their second reading."""
    names = {"calibration": "c2", "honest": "57"}
    for printed in load_rows():
        row = printed.second_reading or printed
        selector = row.selector
        path = row.protocol
        network = load_sized_network(selector.network, 128)
        times = predict_times(network, load_target(selector.target), row.batch_size, path, PERIOD)
        label = f"{selector.target} {selector.framework} {row.variant} {path.name} {path.io_tiles}"
        yield _make(
            times,
            row.seconds,
            INFERENCE,
            set=names.get(row.set, row.set),
            document=selector.document,
            network=selector.network,
            row=f"{label} batch {row.batch_size}",
            series=f"{selector.network} {label}",
            size=float(row.batch_size),
        )


PAGE_SQL = f"""
    SELECT r.*, c.replicas, c.instances, c.micro_batch_size * c.replicas AS configured
    FROM results r JOIN detail.configurations c USING (result_id)
    WHERE r.task = 'inference' AND r.document_id = '{PAGE}'
    ORDER BY r.table_name, r.row_number
"""


def score_page() -> Iterator[Score]:
    """Score the inference rows of the page that `rows.toml` has not."""
    entries = {entry["model"]: entry for entry in read_toml("record.toml")["pages"]}
    with open_warehouse(ROOT / "warehouse") as connection:
        records = run_query(connection, PAGE_SQL).to_pylist()
    for record in records:
        if record["model_printed"] in entries:
            yield _score_page_row(entries[record["model_printed"]], record)


def _score_page_row(entry: Mapping[str, Any], record: Mapping[str, Any]) -> Score:
    platform = record["platform"]
    target = load_target(next(name for name, each in PLATFORMS.items() if each == platform))
    path = select_protocol(entry["protocol"], target)
    path = replace(path, instances=record["instances"], replicas=record["replicas"])
    network: Callable[[int], Program] = load_built(entry["network"])
    if entry["network"] == YOLOV4_P5:
        network = partial(read_yolov4_program, int(record["variant"].split()[1].strip(",")))
    batch = int(record["configured"])
    times = predict_times(network, target, batch, path, PERIOD)
    label = f"{target.name} {record['framework']} {record['variant'] or ''}"
    return _make(
        times,
        batch / record["throughput"],
        INFERENCE,
        set=f"page {entry['network']}",
        document=PAGE,
        network=entry["network"],
        row=f"{label} batch {batch}",
        series=f"{entry['network']} {label}",
        size=float(batch),
    )


def load_built(name: str, sequence: int = 128) -> Callable[[int], Program]:
    """Load a network by the name of a built-in one or of one built here."""
    if name == YOLOV4_P5:
        return partial(read_yolov4_program, 896)
    return BUILDERS.get(name) or load_sized_network(name, sequence)


YOLOV4_P5 = "yolov4-p5"


def read_yolov4_program(size: int, batch: int) -> Program:
    return read_program(build_yolov4(size), batch)


def score_cards() -> Iterator[Score]:
    """Score the rows of a C600 that `record.toml` names.

    Where calls overlap, a batch takes the chip's time. Where one call follows another the host is
    in the figure, and one process drives each short step. FP8 is predicted on the machine of FP8,
    which differs in one constant.
    """
    for entry in read_toml("record.toml")["cards"]:
        metric = entry.get("metric", "throughput")
        for line in read_raw(entry["document"]):
            named = (line["model"], line["metric"]) == (entry["model"], metric)
            condition = any(each in line["conditions"] for each in entry["conditions"])
            # PopRT computes in fp32 where its tables say so. ByteMLPerf's fp32 is that of the file.
            is_wide = line["precision"] == "fp32"
            if named and condition and not is_wide and "packed" not in line["variant"]:
                yield _score_card(entry, line)


def _score_card(entry: Mapping[str, Any], line: Mapping[str, str]) -> Score:
    is_fp8 = line["precision"].lower() == "fp8"
    machine = load_target_file(FP8) if is_fp8 else load_target("c600")
    call = entry.get("time") == "call"
    batch = int(line["batch_size"])
    network = load_built(entry["network"], entry.get("sequence", 128))
    path = select_protocol("lowest-latency", load_target("c600"))
    times = predict_times(network, machine, batch, path, CALL if call else DEVICE)
    figure = parse_number(line["value"])
    measured = figure / MS if line["unit"] == "ms" else batch / figure
    mark = ", host in it" if call else ""
    fp8 = " fp8" if is_fp8 else ""
    label = f"{line['precision']} {line['conditions']}"
    return _make(
        times,
        measured,
        INFERENCE,
        set=f"c600 {entry['network']}{mark}{fp8}",
        document=Path(entry["document"]).stem,
        network=entry["network"],
        row=f"batch {batch} {label}",
        series=f"{entry['document']} {entry['network']} {entry.get('sequence')} {label}",
        size=float(batch),
        host_bound=call,
    )


def score_training() -> Iterator[Score]:
    """Score the training rows of the page."""
    for each in training.load_scores():
        row = each.row
        target = extend_target(load_target(row.target))
        times = predict_step_times(each.prediction, row.network, target, row.setup)
        chips = each.prediction.chips
        yield _make(
            times,
            row.seconds,
            TRAINING,
            set=row.set,
            document=PAGE,
            network=_strip(row.name),
            row=f"{row.target} {row.framework} {chips} chips {row.variant}".strip(),
            host_bound=is_host_bound(each.prediction, row.setup),
        )


def _strip(name: str) -> str:
    return name.removesuffix("-split").removesuffix("-pretraining")


# as the vendor's configuration
RESNET_CUTS = ("stage1.0", "stage1.2", "stage2.0", "stage2.2", "stage3.0", "stage3.3")
TAMU_BATCH = 1920  # of a step, assumed: that of the vendor's configurations for 4 and 16 chips


def score_tamu() -> Iterator[Score]:
    """Score ResNet-50 of table 3: one chip at seven micro-batches, then 2 to 64 chips."""
    for line in read_raw("independent/tamu-aces-2022.csv"):
        rate = line["metric"] == "throughput" and line["chip"] == "GC200"
        if rate and "table 3" in line["place"]:
            chips = int(line["chip_count"])
            micro = int(line["micro_batch_size"])
            accumulation = max(2, round(TAMU_BATCH / micro / chips))
            setup = replace(_setup_resnet(micro, chips, accumulation), norm_span=min(chips, 2))
            single = chips == 1
            yield _score_setup(
                setup,
                "resnet50",
                parse_number(line["value"]),
                set="tamu one chip" if single else "tamu pods",
                document="tamu-aces-2022",
                row=f"{chips} chips, {micro}",
                series="tamu one chip" if single else "",
                size=float(micro),
            )


def score_caraml() -> Iterator[Score]:
    """Score CARAML: ResNet-50 on one chip and GPT-117M on a pipeline of four over batch sizes, and
    GPT-2 of ALCF on four such pipelines.
    """
    for line in read_raw("independent/caraml-2024.csv"):
        printed = "table" in line["place"] and line["chip"] == "GC200"
        if not printed or line["metric"] != "throughput":
            continue
        batch = int(line["batch_size"])
        micro = int(line["micro_batch_size"])
        if line["model"] == "ResNet-50":
            setup = _setup_resnet(micro, 1, batch // micro)
            network = "resnet50"
        else:
            setup = _setup_gpt2(micro, 1, batch)
            network = "gpt2-split"
        yield _score_setup(
            setup,
            network,
            parse_number(line["value"]),
            set=f"caraml {_strip(network)}",
            document="caraml-2024",
            row=f"batch {batch}",
            series=f"caraml {network}",
            size=float(batch),
        )


def score_alcf() -> Iterator[Score]:
    """Score GPT-2 of ALCF: four replicas, each a pipeline of four chips of a Bow Pod64."""
    for line in read_raw("independent/alcf-guide.csv"):
        if line["model"] == "GPT2":
            setup = _setup_gpt2(1, 4, int(line["batch_size"]) // 4)
            yield _score_setup(
                setup,
                "gpt2-split",
                parse_number(line["value"]),
                machine="bow-2000",
                set="alcf gpt2",
                document="alcf-guide",
                row=line["conditions"],
            )


def _setup_gpt2(micro: int, replicas: int, accumulation: int) -> TrainingSetup:
    return TrainingSetup(
        micro,
        replicas,
        accumulation,
        "layer",
        (0.15,) * 4,
        True,
        layers=(0, 4, 4, 4),
        head="first",
    )


def _setup_resnet(micro: int, replicas: int, accumulation: int) -> TrainingSetup:
    cuts = tuple(f"{cut}.relu" for cut in RESNET_CUTS)
    return TrainingSetup(
        micro, replicas, accumulation, "stage", (0.15,), input_bits=8, cut_after=cuts, one_chip=True
    )


def _score_setup(
    setup: TrainingSetup, name: str, rate: float, machine: str = "m2000", **labels: Any
) -> Score:
    target = extend_target(load_target(machine))
    network = load_sized_network(name, 1024)
    step = predict_training(network, target, setup)
    times = predict_step_times(step, network, target, setup)
    seconds = setup.micro_batch * setup.replicas * setup.accumulation / rate
    refused = is_host_bound(step, setup)
    return _make(times, seconds, TRAINING, network=_strip(name), host_bound=refused, **labels)


def score_convolutions() -> Iterator[Score]:
    """Score the convolution layers of a GC2, whose data lie on the chip."""
    figures = read_figures()
    shapes = read_shapes(CONVOLUTIONS)
    machine = load_machine(CONVOLUTIONS, "half")
    path = select_protocol("paper", machine)
    for shape, following in pairwise([*shapes, {"network": None}]):
        size = following["input_size"] if following["network"] == shape["network"] else None
        padding = choose_padding(shape["kernel"], shape["input_size"], shape["stride"], size)
        sizes = {key: value for key, value in shape.items() if key != "network"}
        network = partial(read_program, build_layer(padding=padding, **sizes))
        for batch in BATCHES:
            tflops = figures.get((shape["network"], shape["layer"], batch))
            macs = network(batch).macs
            if tflops is None or not macs:
                continue
            yield _make(
                predict_times(network, machine, batch, path, DEVICE),
                2 * macs / (tflops * 1e12),
                OPERATORS,
                set="citadel convolutions",
                document="citadel-2019",
                network=shape["network"],
                row=f"{shape['layer']} batch {batch}",
                series=f"{shape['network']} {shape['layer']}",
                size=float(batch),
            )


def score_yolov4() -> Iterator[Score]:
    """Score YOLOv4-P5 by latency of a call and by throughput, on the chip and the link alone.

    One PyTorch process sends each batch and waits for it: these rows are refused.
    """
    for setup, figure, value in read_yolov4():
        file, iterations, batch, size, precision = setup
        by_latency = figure == LATENCY
        if by_latency and iterations > 1:
            continue
        machine = load_machine(YOLOV4, precision)
        path = select_protocol("lowest-latency", load_target("m2000"))
        network = partial(read_yolov4_program, size)
        times = predict_times(network, machine, batch, path, CALL if by_latency else PERIOD)
        label = f"{file} {size} {precision} {iterations} iterations"
        yield _make(
            times,
            value / MS if by_latency else batch / value,
            INFERENCE,
            set=f"yolov4 {figure}",
            document="yolov4-heidelberg",
            network=YOLOV4_P5,
            row=f"{label} batch {batch}",
            series=f"yolov4 {figure} {label}",
            size=float(batch),
            host_bound=True,
        )


def score_decoding() -> Iterator[Score]:
    """Score the committed prediction of decoding, written before the figures were read."""
    lines = read_raw("graphcore/poptransformer.csv")
    measured = [parse_number(line["value"]) for line in lines if line["metric"] == "throughput"]
    predicted = read_lines(FOLDER / "decoding-2.csv")
    shapes = [line for line in predicted if line["metric"] == "throughput"]
    for shape, rate in zip(shapes, measured, strict=True):
        batch = shape["batch"] or 1
        yield Score(
            INFERENCE,
            "decoding, blind",
            "poptransformer",
            shape["model"],
            f"{shape['machine']} batch {batch}, {shape['input_length']} of {shape['max_length']}",
            "ms/token",
            MS / rate,
            MS / float(shape["predicted"]),
        )


SETS = (
    score_inference,
    score_page,
    score_cards,
    score_yolov4,
    score_decoding,
    score_blocks,
    score_training,
    score_tamu,
    score_caraml,
    score_alcf,
    score_convolutions,
    score_collectives,
    score_products,
    score_vertex,
)


def score_all() -> list[Score]:
    """Score every set with the present model."""
    return interpolate(score for score_set in SETS for score in score_set())
