"""The rows of tables as Python reads them, with the types of their columns.

Made from `schema/tables/` by `python .ci/records.py`; a test holds the two equal.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import TypedDict


class DocumentsRow(TypedDict):
    document_id: str
    title: str
    publisher: str
    url: str | None
    commit: str | None
    published_on: date | None
    kind: str
    sha256: str
    licence: str
    retrieved_on: date | None
    file: str
    note: str
    measured_by: str | None
    measured_on: str | None
    verified: str | None
    sources: str | None


class RunsRow(TypedDict):
    run_id: str
    backend: str
    device: str
    started_at: datetime
    finished_at: datetime
    command_line: str
    environment: str
    versions: str
    setup: str
    plan: str
    model: str
    images: str
    notes: str
    origin: str | None
    document_id: str


class PlatformsRow(TypedDict):
    platform: str
    family: str | None
    chip: str | None
    chip_count: int | None
    form: str | None
    nodes: int | None
    host_processor: str | None
    host_processors_per_node: int | None
    virtual_cpus: int | None
    clock_ghz: float | None
    tiles_per_chip: int | None
    sram_per_chip_mib: float | None
    peak_fp16_tflops: float | None
    peak_fp32_tflops: float | None
    peak_tf32_tflops: float | None
    peak_fp8_tflops: float | None
    peak_int8_tops: float | None
    peak_source: str | None
    rated_power_w: float | None
    power_source: str | None
    rated_chip_power_w: float | None
    chip_power_source: str | None
    list_price_usd: float | None
    price_source: str | None
    source: str | None


class ModelsRow(TypedDict):
    model: str
    item: str | None
    item_note: str | None
    parameters: int | None
    gmacs_per_item: float | None
    source: str | None


class ResultsRow(TypedDict):
    result_id: str
    origin: str
    publisher: str
    document_id: str | None
    table_name: str | None
    row_number: int | None
    published_on: date | None
    run_id: str | None
    task: str
    benchmark: str | None
    division: str | None
    mlperf_id: str | None
    mlperf_round: str | None
    submitter: str | None
    model: str
    model_printed: str
    variant: str | None
    dataset: str | None
    dataset_printed: str | None
    platform: str
    chip: str | None
    chip_count: int | None
    sdk_version: str | None
    framework: str | None
    precision: str | None
    precision_printed: str | None
    activation_bits: int | None
    weight_bits: int | None
    batch_size: int | None
    micro_batch_size: int | None
    throughput: float | None
    item: str | None
    throughput_per_chip: float | None
    throughput_implied: float | None
    latency_ms: float | None
    latency_basis: str | None
    latency_scope: str | None
    efficiency: float | None
    power_scope: str | None
    time_to_train_s: float | None
    phase: str | None
    sequence_length: int | None
    packed: bool | None
    sparsity: float | None
    conditions: str | None
    relationship: str | None
    interest: str | None
    interest_source: str | None
    usable: bool
    errors: int | None
    warnings: int | None
    same_as: str | None


class FiguresRow(TypedDict):
    result_id: str
    metric: str
    value: float
    unit: str | None
    scope: str | None


class MicrobenchmarksRow(TypedDict):
    microbenchmark_id: str
    publisher: str
    document_id: str
    row_number: int
    relationship: str | None
    interest: str | None
    interest_source: str | None
    chip: str
    chip_printed: str | None
    chip_confidence: str | None
    chip_source: str | None
    chip_count: int | None
    operation: str
    shape: str | None
    precision: str | None
    precision_printed: str | None
    metric: str
    statistic: str | None
    unit: str
    value: float
    canonical_unit: str
    canonical_value: float
    sdk_version: str | None
    conditions: str | None
    place: str


class MlperfEntriesRow(TypedDict):
    round: str
    submitter: str
    division: str | None
    platform: str | None
    platform_printed: str | None
    benchmark: str
    chip_count: int | None
    chip: str | None
    chip_printed: str | None
    framework: str | None
    n_runs: int
    n_success: int
    minutes: float | None
    minutes_published: float | None
    published_in: str | None
    path: str
    submitter_folder: str
    logs_expected: int | None
    logs_present: int
    logs_missing: int
    distinct_logs: int
    shared_logs: int
    distinct_seeds: int
    no_score_reason: str | None
    availability: str | None
    status: str | None
    nodes: int | None
    scaling_factor: float | None
    run_minutes_min: float | None
    run_minutes_max: float | None
    run_minutes_cv: float | None
    global_batch_size: int | None
    convergence_unit: str | None
    epochs_to_converge: float | None
    samples_to_converge: float | None
    tokens_to_converge: float | None
    rcp_mean: float | None
    rcp_unit: str | None
    normalised: bool
    reference_to_converge: float | None
    reference_method: str | None
    expected_scaling_factor: float | None
    quality_metric: str | None
    quality_target: float | None
    quality_reached: float | None
    quality_check: str
    second_quality_metric: str | None
    second_quality_target: float | None
    second_quality_reached: float | None
    host_processor: str | None
    host_processors_per_node: int | None
    operating_system: str | None
    other_software: str | None
    chip_memory: str | None
    chip_memory_type: str | None
    chip_interconnect: str | None
    host_memory: str | None
    host_network: str | None
    hardware_notes: str | None
    software_notes: str | None
    energy_j: float | None
    system_path: str
    system_sha256: str | None
    scaling_sha256: str | None
    findings: str | None
    attribution: str
    document_id: str
    result_id: str | None
    company: str
    same_as: str | None
    usable: bool
    mlperf_id: str | None
    mlperf_id_confidence: str | None
    comparable_rounds: str | None
    model: str | None
    minutes_low: float | None
    minutes_high: float | None
    interval_method: str | None
    interval_runs: int | None
    minutes_per_sample: float | None
    minutes_per_sample_low: float | None
    minutes_per_sample_high: float | None
    speed_runs: int | None
    startup_minutes: float | None
    wait_minutes: float | None
    no_speed_reason: str | None
    no_interval_reason: str | None


class MlperfRunsRow(TypedDict):
    round: str
    path: str
    file: str
    minutes: float | None
    status: str | None
    counted: bool
    reason: str | None
    init_minutes: float | None
    global_batch_size: int | None
    epochs: float | None
    samples: float | None
    tokens: float | None
    quality_reached: float | None
    second_quality_reached: float | None
    seed: str | None
    seeds: int | None
    energy_j: float | None
    lines: int
    sha256: str | None
    evaluations: int | None
    minutes_per_sample: float | None
    minutes_per_sample_error: float | None
    startup_minutes: float | None
    wait_minutes: float | None
    no_speed_reason: str | None
    findings: str | None
    copies: int
    document_id: str


class CellsRow(TypedDict):
    result_id: str
    cell_number: int
    column_name: str
    header: str
    raw_text: str
    value: float | None
    unit: str | None
    factor: float | None
    document_id: str
    locator: str
    source_locator: str | None


class FlagsRow(TypedDict):
    rule: str
    severity: str
    result_id: str
    column_name: str
    message: str
    suggested: str | None


class ClaimsRow(TypedDict):
    claim_id: str
    document_id: str
    claim: str
    figure: str
    value: float
    unit: str
    digits_tolerance: float
    relation: str | None
    subject: str | None
    baseline: str | None
    model_printed: str | None
    task: str | None
    metric: str
    kind: str
    direction: str | None
    sdk_version: str | None
    precision_printed: str | None
    batch: str | None
    framework: str | None
    dataset_printed: str | None
    place: str
    interpretation: str | None
    basis: str | None
    recomputation: str | None
    recomputation_sql: str | None
    recomputed: str
    verdict: str
    rests_on: str | None
    reason: str
    swapped_baseline: str | None
    gap_percent: float | None
    gap_kind: str | None
    not_recomputable: str | None
    ledger_id: str | None
    locator: str


class RecomputationsRow(TypedDict):
    claim_id: str
    position: int
    value: float
    baseline: str
    arithmetic: str
    outcome: str
    gap_percent: float | None
    gap_kind: str
    not_counted: str | None
    stand_in: str | None
    departs: str | None
    division: str | None
    system: str | None
    source: str | None
    reading: str | None


class ContradictionsRow(TypedDict):
    contradiction_id: str
    kind: str
    claim_ids: str | None
    what: str
    resolution: str
    recomputation: str | None
    recomputation_sql: str | None
    recomputed: str
    document_id: str | None
    locator: str


class BuildRow(TypedDict):
    table_name: str
    row_count: int
    build_id: str
