"""Power of Graphcore boards by `gc-info`, whose attributes are lines of `key: value`.

The power is the whole board's, and each IPU of a board reports it: a C2 has two IPUs and must not be counted twice.
Form of the attributes: Graphcore's command line tools, chapter "Device attributes".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean

from ipu_results.errors import RunnerError
from ipu_results.runner.power.meter import INTERVAL_S, Reading, SampledSensor, check_watts, run_command

COMMAND = ("gc-info", "-i", "-d")
POWER = "total board power"
SERIAL = "board serial number"
WATTS = re.compile(r"(\d+(?:\.\d+)?)\s*W", re.ASCII)
ABSENT = ("", "N/A")
MAX_DEVICES = 64  # on one board, and groups of them


def parse_attributes(text: str) -> list[dict[str, str]]:
    """Return the attributes of each device in a text. A repeated key begins the next device."""
    devices: list[dict[str, str]] = [{}]
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if not colon:
            continue
        if key.strip() in devices[-1]:
            devices.append({})
        devices[-1][key.strip()] = value.strip()
    return devices


def sum_board_power(texts: Iterable[str]) -> Reading:
    """Return the power of all boards in what gc-info printed of each device. A board counts once."""
    boards: dict[str, list[float]] = {}
    for device in (device for text in texts for device in parse_attributes(text)):
        serial, power = device.get(SERIAL, ""), parse_power(device)
        if serial in ABSENT:
            return Reading(None, f"gc-info gave no {SERIAL}")
        if power.watts is None:
            return power
        boards.setdefault(serial, []).append(power.watts)
    if not boards:
        return Reading(None, "gc-info gave no device")
    return check_watts(sum(map(fmean, boards.values())), "gc-info")


def parse_power(device: dict[str, str]) -> Reading:
    """Return what one device reports of its board."""
    value = device.get(POWER, "")
    if match := WATTS.fullmatch(value):
        return check_watts(float(match[1]), "gc-info")
    return Reading(None, f"gc-info gave no {POWER}" if value in ABSENT else f"gc-info's {POWER} is not in watts")


def run_gc_info(number: str) -> str:
    """Return what gc-info prints of one device. Raises RunnerError when it cannot be run."""
    return run_command([*COMMAND, number])


def find_source(query: Callable[[str], str] = run_gc_info) -> Callable[[], list[str]]:
    """Return a function that reads the text of an IPU, which reports the power of its whole board.

    Raises RunnerError when gc-info cannot be run, or when there are several boards: which one measures is unknown then.
    """
    texts, serials = [query("0")], set[str]()
    while len(serials) < 2:  # ids count up from 0; gc-info fails or names no board after the last one
        new = {device[SERIAL] for device in parse_attributes(texts[-1]) if device.get(SERIAL, "") not in ABSENT}
        serials |= new
        if not new or len(texts) > MAX_DEVICES:
            return lambda: [query("0")]
        try:
            texts.append(query(str(len(texts))))
        except RunnerError:
            return lambda: [query("0")]
    raise RunnerError("IPUs of several boards, and the device's name has no id to tell which of them measures")


def open_board_sensor(read_texts: Callable[[], Sequence[str]], *, interval_s: float = INTERVAL_S) -> SampledSensor:
    """Open a sensor of all boards in the texts of gc-info. Raises RunnerError where they report no power."""
    power = sum_board_power(read_texts())
    if power.watts is None:
        raise RunnerError(power.reason or "gc-info gave no power")
    return SampledSensor(lambda: sum_board_power(read_texts()), scope="board", name="gc-info", interval_s=interval_s)
