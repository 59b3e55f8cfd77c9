"""Power of Graphcore boards by `gc-info`, whose attributes are lines of `key: value`.

The power is the whole board's, and each IPU of a board reports it: a C2 has two IPUs and must not be counted twice.
Form of the attributes: Graphcore's command line tools, chapter "Device attributes".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean

from ipu_results.errors import RunnerError
from ipu_results.runner.power.meter import INTERVAL_S, Reading, Sampled, answer, reading

COMMAND = ("gc-info", "-i", "-d")
POWER = "total board power"
SERIAL = "board serial number"
BOARD = "board type"
WATTS = re.compile(r"(\d+(?:\.\d+)?)\s*W", re.ASCII)
ABSENT = ("", "N/A")
# On one board, and groups of them.
MOST_DEVICES = 64


def attributes(text: str) -> list[dict[str, str]]:
    """The attributes of each device in a text. A key that was there before begins the next device."""
    devices: list[dict[str, str]] = [{}]
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if not colon:
            continue
        if key.strip() in devices[-1]:
            devices.append({})
        devices[-1][key.strip()] = value.strip()
    return devices


def board_power(texts: Iterable[str]) -> Reading:
    """The power of all boards in what gc-info printed of each device, in watts. A board counts once."""
    boards: dict[str, list[float]] = {}
    for device in (device for text in texts for device in attributes(text)):
        serial, found = device.get(SERIAL, ""), device_power(device)
        if serial in ABSENT:
            return Reading(None, f"gc-info gave no {SERIAL}")
        if found.watts is None:
            return found
        boards.setdefault(serial, []).append(found.watts)
    if not boards:
        return Reading(None, "gc-info gave no device")
    return reading(sum(map(fmean, boards.values())), "gc-info")


def device_power(device: dict[str, str]) -> Reading:
    """What one device reports of its board."""
    value = device.get(POWER, "")
    found = WATTS.fullmatch(value)
    if found:
        return reading(float(found[1]), "gc-info")
    return Reading(None, f"gc-info gave no {POWER}" if value in ABSENT else f"gc-info's {POWER} is not in watts")


def device_ids(device: str) -> list[str]:
    """The ids at the end of a device's name, such as `ipu:0,1` or `ipu1`."""
    found = re.search(r"[\d,]*$", device, re.ASCII)
    return re.findall(r"\d+", found[0] if found else "", re.ASCII)


def ask(number: str) -> str:
    """What gc-info prints of the device of that id. Raises RunnerError when it cannot be run."""
    return answer([*COMMAND, number])


def source(device: str, ask: Callable[[str], str] = ask) -> Callable[[], list[str]]:
    """What to call for the texts of a device's IPUs; of any IPU's where its name has no id and all are on one board.

    Raises RunnerError when gc-info cannot be run, or when it is not certain which board measures.
    """
    numbers = device_ids(device)
    if not numbers:
        _assert_one_board(ask)
        numbers = ["0"]
    return lambda: [ask(number) for number in numbers]


def _assert_one_board(ask: Callable[[str], str]) -> None:
    """The ids count up from 0, and gc-info fails or knows no board after the last one."""
    texts, serials = [ask("0")], set[str]()
    while len(serials) < 2:
        found = {device[SERIAL] for device in attributes(texts[-1]) if device.get(SERIAL, "") not in ABSENT}
        serials |= found
        if not found or len(texts) > MOST_DEVICES:
            return
        try:
            texts.append(ask(str(len(texts))))
        except RunnerError:
            return
    raise RunnerError("IPUs of several boards, and the device's name has no id to tell which of them measures")


def boards(ask: Callable[[], Sequence[str]], *, interval_s: float = INTERVAL_S) -> Sampled:
    """A sensor of all boards that `ask` tells of, by the texts that gc-info printed."""
    return Sampled(lambda: board_power(ask()), scope="board", name="gc-info", interval_s=interval_s)
