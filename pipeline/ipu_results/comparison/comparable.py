"""What may be compared: the one place that applies the rules of schema/comparison.toml to two rows.

`ours` is a measurement, and a row a record of `load_rows`: a result with what a comparison needs of
its machine and of its official entry.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb

from ipu_results.comparison.measurement import COMPARISON, FIGURES, INPUT_SIZE, SETUP, Measurement
from ipu_results.ground.physics import PER_ITEM, compute_rate
from ipu_results.ground.sql import run_query
from ipu_results.ground.text import find_nearest_words
from ipu_results.schema import table
from ipu_results.schema.vocabulary import normalise_name

Row = Mapping[str, Any]

RUN = COMPARISON["run"]
MAX_BATCH_FACTOR: float = RUN["max_batch_factor"]
SAME_LATENCY = frozenset(frozenset(pair) for pair in RUN["same_latency"])
REASONS: Mapping[str, str] = RUN["reasons"]
NOT_STATED = REASONS["not_stated"]
DISTANCE: Mapping[str, float] = RUN["distance"]
CONDITIONS: Mapping[str, str] = RUN["conditions"]
SCOPES = ("power_scope", "latency_scope")
SETUPS: Mapping[str, Row] = RUN["setups"]
MAX_VARIANTS = 3  # that a remark names
EMULATED = "emulated, not measured"
ORIGINS = {"emulated": EMULATED}  # all others are measured, by whoever
SUSPECT = "R47"  # the rule that flags a suspect row
FEW = [own.name for own in table("results").list_kept("figures") if own.kind == "double"]
FEW_FIGURES = ", ".join(f"any_value(value) FILTER (metric = '{name}') AS {name}" for name in FEW)
SELECT = f"""
    SELECT
        r.*, f.* EXCLUDE (result_id), d.suspect, d.doubt, r.time_to_train_s / 60 AS minutes,
        CASE WHEN r.run_id IS NOT NULL THEN 'amortised' END AS latency_kind,
        nullif(regexp_extract(r.variant, '{INPUT_SIZE.pattern}'), '') AS input_size,
        p.family, e.comparable_rounds, e.minutes_low, e.minutes_high, e.attribution
    FROM results r
    LEFT JOIN (SELECT result_id, {FEW_FIGURES} FROM figures GROUP BY result_id) f USING (result_id)
    LEFT JOIN (
        SELECT
            result_id, any_value(message) FILTER (rule = '{SUSPECT}') AS suspect,
            string_agg(
                concat(rule, CASE WHEN severity = 'error' THEN ', error: ' ELSE ', suspect: ' END, message),
                '; ' ORDER BY rule, message
            ) AS doubt
        FROM flags
        WHERE severity = 'error' OR rule = '{SUSPECT}'
        GROUP BY result_id
    ) d USING (result_id)
    LEFT JOIN platforms p USING (platform)
    LEFT JOIN mlperf_entries e USING (result_id)
"""
# of the sources: equally near rows keep it
ORDER = "r.document_id, r.table_name, r.row_number, r.result_id"


@dataclass(frozen=True, slots=True)
class ColumnRule:
    """A column in which two rows must agree; schema/comparison.toml says how each kind compares."""

    column: str
    kind: str
    code: str
    what: str = ""
    reason: str = "differ"
    blank: Any = None
    blank_words: str = NOT_STATED
    figures: tuple[str, ...] = ()


RULES = tuple(ColumnRule(**entry) for entry in RUN["rules"])
FIGURE_RULES = tuple(
    ColumnRule(**{**entry, "figures": tuple(entry["figures"])}) for entry in RUN["figure_rules"]
)
# Columns that say what a row may be compared with. Rows that agree in all of them have the same
# verdicts.
COMPARED_COLUMNS = tuple(
    dict.fromkeys(
        [
            *(
                rule.column
                for rule in (*RULES, *FIGURE_RULES)
                if rule.kind not in ("another", "factor")
            ),
            "model",
            "division",
            "mlperf_round",
            "comparable_rounds",
            "latency_kind",
            "origin",
            "minutes",
        ]
    )
)


class Obstacle(str):
    """Why a row or a figure may not be compared, in words; `code` names the rule for programs.

    `has_next_step` says that the user can state what is missing.
    """

    code: str
    has_next_step: bool

    def __new__(cls, reason: str, code: str = "other", *, has_next_step: bool = False) -> Obstacle:
        obstacle = super().__new__(cls, reason)
        obstacle.code = code
        obstacle.has_next_step = has_next_step
        return obstacle


def load_rows(connection: duckdb.DuckDBPyConnection, where: str = "true") -> list[dict[str, Any]]:
    """Load rows of `results` with what a comparison needs of their figures, flags, machine and
    official entry.

    `doubt` names the rules and reasons for which a row has an error or is suspect.
    """
    rows: list[dict[str, Any]] = run_query(
        connection, f"{SELECT} WHERE {where} ORDER BY {ORDER}"
    ).to_pylist()
    return rows


def find_obstacle(ours: Measurement, row: Row) -> Obstacle | None:
    """Return why a row may not be compared with the measurement at all; None where it may."""
    for rule in RULES:
        if rule.kind == "mlperf":
            obstacle = _find_mlperf_obstacle(rule, ours, row)
        elif rule.kind == "factor":
            obstacle = _find_batch_obstacle(rule, ours, row)
        else:
            obstacle = find_rule_obstacle(rule, getattr(ours, rule.column, None), row[rule.column])
        if obstacle is not None:
            return obstacle
    return None


def find_rule_obstacle(rule: ColumnRule, ours: Any, theirs: Any) -> Obstacle | None:
    """Return why two values break a rule; None where they agree.

    The kinds of rules are those of comparison.toml.
    """
    match rule.kind:
        case "equal":
            agree = (rule.blank if ours is None else ours) == (
                rule.blank if theirs is None else theirs
            )
        case "stated":
            agree = ours is not None and ours == theirs
        case "known":
            agree = not ours or not theirs or ours == theirs
        case "absent":
            agree = not theirs
        case "another":
            agree = theirs is None or ours != theirs
        case _:  # latency: an unknown one may be of a batch
            may_fit = not (ours and theirs) and PER_ITEM not in (ours, theirs)
            agree = ours == theirs or may_fit or frozenset({ours, theirs}) in SAME_LATENCY
    return None if agree else _refuse(rule, ours, theirs)


def _refuse(
    rule: ColumnRule, ours: Any, theirs: Any, reason: str = "", *, has_next_step: bool = False
) -> Obstacle:
    words = [rule.blank_words if value is None else value for value in (ours, theirs)]
    text = REASONS[reason or rule.reason]
    filled = text.format(
        what=rule.what, ours=words[0], theirs=words[1], factor=f"{MAX_BATCH_FACTOR:g}"
    )
    return Obstacle(filled, rule.code, has_next_step=has_next_step)


def _find_mlperf_obstacle(rule: ColumnRule, ours: Measurement, row: Row) -> Obstacle | None:
    """Apply MLCommons' rules: within a benchmark, a division, and the rounds that it lists as
    comparable.
    """
    if RUN["mlperf"] not in (ours.benchmark, row["benchmark"]):
        return None
    if ours.benchmark is None and ours.minutes is not None:
        return _refuse(rule, None, None, "minutes", has_next_step=True)
    if ours.benchmark != row["benchmark"]:
        return _refuse(rule, ours.benchmark, row["benchmark"])
    divisions = ColumnRule("division", "equal", "mlperf-divisions", "MLPerf division")
    if ours.division is None or ours.mlperf_round is None:
        return _refuse(divisions, None, None, "mlperf_not_stated", has_next_step=True)
    if obstacle := find_rule_obstacle(divisions, ours.division, row["division"]):
        return obstacle
    if not is_comparable_round(ours.mlperf_round, row["comparable_rounds"] or row["mlperf_round"]):
        return Obstacle(REASONS["mlperf_rounds"], "mlperf-rounds")
    return None


def is_comparable_round(mlperf_round: str, span: Any) -> bool:
    """Return whether a round is within a span such as 1.0-2.1, both ends included; False for words."""
    first, _, last = str(span).partition("-")
    try:
        return float(first) <= float(mlperf_round) <= float(last or first)
    except ValueError:
        return False


def _find_batch_obstacle(rule: ColumnRule, ours: Measurement, row: Row) -> Obstacle | None:
    """Return why the batch sizes of two inference rows are too far apart."""
    own = ours.batch_size
    theirs = row["batch_size"]
    if ours.task != "inference" or (own is None and theirs is None):
        return None
    if own is None:
        return _refuse(rule, own, theirs, "batch_not_stated")
    too_far = theirs is not None and max(own / theirs, theirs / own) > MAX_BATCH_FACTOR
    return _refuse(rule, own, theirs) if too_far else None


def find_figure_obstacle(figure: str, ours: Measurement, row: Row) -> Obstacle | None:
    """Return why one figure may not be compared although the rows may; None where it may."""
    for rule in FIGURE_RULES:
        if figure in rule.figures:
            is_latency = rule.kind == "latency"
            theirs = get_latency_basis(row) if is_latency else row[rule.column]
            own = ours.stated_basis if is_latency else getattr(ours, rule.column)
            if obstacle := find_rule_obstacle(rule, own, theirs):
                return obstacle
    return None


def get_latency_basis(row: Row) -> str | None:
    """Return what the latency of a row times; None where its source does not say."""
    basis: str | None = row["latency_basis"] or row["latency_kind"]
    return basis


def list_shared_figures(ours: Measurement, row: Row) -> list[str]:
    """List the figures that both sides have, in the order of FIGURES."""
    return [name for name in FIGURES if getattr(ours, name) is not None and row[name] is not None]


def find_missing_figure(ours: Measurement, row: Row) -> Obstacle | None:
    """Return why no figure of a row can be compared; None where one can."""
    obstacles = [find_figure_obstacle(name, ours, row) for name in list_shared_figures(ours, row)]
    if not obstacles:
        theirs = [name for name in FIGURES if row[name] is not None]
        own = [name for name in FIGURES if getattr(ours, name) is not None]
        reason = REASONS["no_figure"].format(
            ours=", ".join(own), theirs=", ".join(theirs) or "none"
        )
        return Obstacle(reason, "different-figures")
    reasons = list(dict.fromkeys(obstacle for obstacle in obstacles if obstacle is not None))
    return None if None in obstacles else Obstacle("; ".join(reasons), reasons[0].code)


def get_interval(figure: str, values: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the stated interval or band of a figure, the lower end first; None for a figure
    without one.

    The interval of an amortised latency is that of the throughput, too: batch size over latency.
    """
    low = values.get(f"{figure}_low")
    high = values.get(f"{figure}_high")
    if (
        figure == "throughput"
        and values.get("latency_kind") == "amortised"
        and values.get("batch_size")
    ):
        ends = values.get("latency_ms_high"), values.get("latency_ms_low")
        low, high = (compute_rate(values["batch_size"], end) if end else None for end in ends)
    return (low, high) if low and high else None


@dataclass(frozen=True, slots=True)
class Difference:
    """One condition.

    `known` is false where either side does not state it: then it may be the same or not.
    """

    what: str
    ours: str | None
    theirs: str | None
    known: bool


def list_differences(ours: Measurement, row: Row) -> list[Difference]:
    """List the conditions that differ, those that both sides state first."""
    setup = SETUPS.get(row["table_name"], {})
    names = (
        "batch_size variant conditions dataset platform precision framework chip_count latency_ms"
        " power_w efficiency sdk_version mlperf_round".split()
    )
    own = {name: getattr(ours, name) for name in (*names, *SCOPES)} | {
        "figures": ORIGINS.get(ours.origin, "measured"),
        "latency": ours.latency_kind or ours.latency_basis,
        **{name: ours.setup.get(name) for name in SETUP},
    }
    theirs = {
        **{name: setup.get(name) for name in own},
        **{name: row[name] for name in (*names, "latency_scope")},
        "figures": ORIGINS.get(row["origin"], "measured"),
        "latency": row["latency_kind"] or row["latency_basis"] or setup.get("latency_kind"),
        "power_scope": row["power_scope"] or setup.get("power_scope"),
    }
    differences = [
        Difference(
            CONDITIONS[name], value and str(value), other and str(other), None not in (value, other)
        )
        for name, value, other in pair_conditions(own, theirs)
        if not is_same(value, other) and (value, other) != (None, None)
    ]
    return sorted(differences, key=lambda difference: not difference.known)


def pair_conditions(
    ours: Mapping[str, Any], theirs: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name and both values, None for a blank one, of each of CONDITIONS that both sides
    have.
    """
    for name in CONDITIONS:
        if name not in ours or name not in theirs:
            continue
        own = ours[name] or None
        other = theirs[name] or None
        # what one side states alone says nothing of another framework's versions
        if (
            name == "sdk_version"
            and None in (own, other)
            and not is_same(ours["framework"], theirs["framework"])
        ):
            continue
        if name == "latency_scope" and not (
            own and other and ours["latency_ms"] and theirs["latency_ms"]
        ):
            continue
        if name == "power_scope" and not (
            ours["power_w"] and (theirs["power_w"] or theirs["efficiency"])
        ):
            continue
        yield name, own, other


def is_same(ours: Any, theirs: Any) -> bool:
    """Return whether both sides state a condition and agree, but for case and punctuation."""
    if ours in (None, "") or theirs in (None, ""):
        return False
    return normalise_name(str(ours)) == normalise_name(str(theirs))


def has_same_chips(ours: Measurement, row: Row) -> bool:
    """Return whether as many chips took part, as far as both sides say."""
    return None in (ours.chip_count, row["chip_count"]) or ours.chip_count == row["chip_count"]


def is_same_set_up(ours: Measurement, row: Row) -> bool:
    """Return whether a row has our machine, chips and batch size, and a precision that does not
    contradict ours.
    """
    precisions = {ours.precision, row["precision"]} - {None}
    same = (
        ours.platform is not None and ours.platform == row["platform"] and has_same_chips(ours, row)
    )
    # the rules of the benchmark leave batch and precision to the submitter
    if ours.benchmark is not None:
        return same
    return same and ours.batch_size == row["batch_size"] and len(precisions) <= 1


def find_doubted(ours: Measurement, rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the same set-up that only an error or a doubt keeps from a comparison."""
    doubted = []
    for row in rows:
        if row["doubt"] and is_same_set_up(ours, row):
            cleared = {**row, "errors": 0, "suspect": None}
            if not (find_obstacle(ours, cleared) or find_missing_figure(ours, cleared)):
                doubted.append(row)
    return doubted


def remark_on_variant(ours: Measurement, rows: Sequence[Row]) -> Measurement:
    """Remark on a variant that no row of the model has, with the nearest; it may be new, so it is
    not refused.
    """
    known = sorted({row["variant"] for row in rows if row["variant"]})
    spelled = {normalise_name(variant) for variant in known}
    if not (ours.variant and known) or normalise_name(ours.variant) in spelled:
        return ours
    near = find_nearest_words(ours.variant, known) or known[:MAX_VARIANTS]
    remark = (
        f"variant {ours.variant!r}: no row of {ours.model} has it; the nearest: {', '.join(near)}"
        " (variant)"
    )
    return replace(ours, remarks=(*ours.remarks, remark))


def compute_distance(ours: Measurement, row: Row, family: str | None) -> float:
    """Return how far a comparable row is, 0 for the same conditions; `family` is that of our
    machine.
    """
    variants = [normalise_name(variant or "") for variant in (ours.variant, row["variant"])]
    batches = ours.batch_size, row["batch_size"]
    batch = 0.0 if batches == (None, None) else DISTANCE["unknown_batch"]
    return sum(
        (
            _compute_machine_distance(ours, row, family),
            batch if None in batches else DISTANCE["per_doubled_batch"] * _log_ratio(*batches),
            _weigh(ours.precision, row["precision"], "precision"),
            _weigh(ours.framework, row["framework"], "framework"),
            DISTANCE["other_variant"] * (variants[0] != variants[1]),
            DISTANCE["other_sdk"] * (ours.sdk_version != row["sdk_version"]),
        )
    )


def _compute_machine_distance(ours: Measurement, row: Row, family: str | None) -> float:
    if ours.platform is None:
        return DISTANCE["unknown_machine"]
    if ours.platform == row["platform"] and has_same_chips(ours, row):
        return 0.0
    if ours.chip is not None and ours.chip == row["chip"]:
        return DISTANCE["other_chip_count"] + _log_ratio(ours.chip_count, row["chip_count"])
    return (
        DISTANCE["other_chip"]
        if family is not None and family == row["family"]
        else DISTANCE["other_family"]
    )


def _log_ratio(ours: int | None, theirs: int | None) -> float:
    return abs(math.log2(ours / theirs)) if ours and theirs else 0.0


def _weigh(ours: str | None, theirs: str | None, name: str) -> float:
    if ours is None or theirs is None:
        return DISTANCE[f"unknown_{name}"]
    return 0.0 if ours == theirs else DISTANCE[f"other_{name}"]


def sort_by_distance(
    ours: Measurement, rows: Sequence[Row], family: str | None
) -> list[tuple[float, Row]]:
    """Return comparable rows with their distance, nearest first; equals in the order of the
    sources, newest first.
    """
    pairs = [(compute_distance(ours, row, family), row) for row in rows]
    return sorted(
        pairs,
        key=lambda pair: (
            pair[0],
            -(pair[1]["published_on"].toordinal() if pair[1]["published_on"] else 0),
        ),
    )
