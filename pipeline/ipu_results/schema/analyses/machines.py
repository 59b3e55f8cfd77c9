"""Views of larger and dearer machines: scaling, and performance per dollar."""

from __future__ import annotations

from ipu_results.schema.columns import boolean, double, integer, text
from ipu_results.schema.view import ERRORS, WARNINGS, View, of

BASE_ERRORS = integer("base_errors", "Error flags on the row of the smallest machine.")

MACHINES: tuple[View, ...] = (
    View(
        "scaling",
        "Graphcore's training rows from 16 chips up beside the smallest machine of the same curve: throughput of one "
        "page version (equal but for platform, chips, batch and SDK; a row that several versions print stands once), "
        "and closed MLPerf entries of one round, benchmark and framework. `measure` keeps them apart.",
        (
            text("measure", "What is compared: `throughput` or `mlperf time to train`; never one with the other."),
            *of("results", "origin publisher"),
            "platforms.family",
            *of("results", "model variant dataset framework precision platform chip_count sdk_version batch_size"),
            *of("results", "throughput item"),
            *of("mlperf_entries", "minutes samples_to_converge"),
            text("base_platform", "The curve's smallest machine."),
            integer("base_chip_count", "Its chips."),
            text("base_sdk_version", "Its SDK."),
            integer("base_batch_size", "Its batch.", unit="item"),
            boolean("same_sdk", "Whether both rows tell the same SDK."),
            double("speed_up", "Throughput over the smallest machine's, or its minutes over the row's."),
            double("efficiency", "Speed-up over the ratio of chips: 1 is linear scaling."),
            double("samples_efficiency", "MLPerf: samples to converge on the smallest machine over the row's."),
            double(
                "rate_efficiency",
                "MLPerf: efficiency over samples_efficiency, so samples per minute and chip over the smallest "
                "machine's; evaluation and start-up count in.",
            ),
            ERRORS,
            BASE_ERRORS,
            WARNINGS,
            "results.result_id",
            text("base_result_id", "Result of the smallest machine."),
            *of("results", "document_id table_name row_number"),
            *of("mlperf_entries", "benchmark submitter round division comparable_rounds mlperf_id"),
            *of("mlperf_entries", "mlperf_id_confidence attribution"),
        ),
    ),
    View(
        "per_dollar",
        "Training on 16 IPUs against one node of 8 A100-80GB: performance, performance per dollar, and the prices at "
        "which they break even. Prices in USD of the whole machine: `ipu_price` is that of every IPU machine and "
        "`gpu_price` of the GPU one; without them list prices hold, null where none is known (Bow Pod16). MLPerf pairs "
        "share round, benchmark and the closed division; throughput pairs share network, variant and item, 16-bit "
        "rows of the newest documents alone.",
        (
            text("measure", "What is compared: `mlperf time to train` or `training throughput`."),
            text("network", "Network that both ran."),
            text("ipu_platform", "The IPU machine."),
            text("gpu_platform", "The GPU machine; an MLPerf system as it is named there."),
            double("ipu_figure", "Minutes or throughput of the IPU machine; `unit` tells."),
            double("gpu_figure", "The same of the GPU machine."),
            text("unit", "Unit of both figures."),
            double("performance_ratio", "Performance of the IPU machine over the GPU machine's."),
            double("ipu_price_usd", "Price that the row is reckoned with.", unit="USD"),
            double("gpu_price_usd", "Price that the row is reckoned with, of a DGX A100 640GB.", unit="USD"),
            boolean("ipu_price_listed", "Whether that is a list price (`platforms`), not one that was asked for."),
            boolean("gpu_price_listed", "Whether that is a list price (`platforms`), not one that was asked for."),
            double("per_dollar_ratio", "Performance per dollar of the IPU machine over the GPU machine's."),
            double(
                "break_even_ipu_price_usd",
                "IPU price at which both give the same per dollar, GPU price held.",
                unit="USD",
            ),
            double(
                "break_even_gpu_price_usd",
                "GPU price at which both give the same per dollar, IPU price held.",
                unit="USD",
            ),
            double(
                "gpu_fastest_figure",
                "Throughput: the fastest mixed-precision figure that NVIDIA's documents give for the network on eight "
                "A100 of any memory and framework. MLPerf: the least minutes of any submitter's closed entry of the "
                "round on one node of the same eight GPUs.",
            ),
            text("gpu_fastest_entry", "Submitter and system of those minutes."),
            text("ipu_framework", "Framework on the IPU machine."),
            text("gpu_framework", "Framework on the GPU machine."),
            text("differs", "In what the two rows differ: IPU / GPU."),
            integer("errors", "Error flags on both results."),
            text("ipu_result_id", "Result of the IPU machine."),
            text("gpu_result_id", "Result of the GPU machine."),
            *of("mlperf_entries", "benchmark round division"),
            text("ipu_mlperf_id", "MLPerf result id of the IPU entry; null where none is known."),
            *of("mlperf_entries", "mlperf_id_confidence attribution"),
        ),
        parameters=(("ipu_price", "NULL"), ("gpu_price", "NULL")),
    ),
)
