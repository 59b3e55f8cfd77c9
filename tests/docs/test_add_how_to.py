"""The guide on adding a source and the pages of two more vendors are followed in a copy of the
checkout.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import RAW, ROOT, query_rows
from tests.docs.docs_support import DOCS, check_page

pytestmark = [pytest.mark.slow, pytest.mark.docs]

PAGE = DOCS / "how-to" / "add-a-source.md"
BLOCK = re.compile(r"```(sh|toml|text)\n(.*?)```", re.S)
PLACE = re.compile(r"# (\S+?)(?:, under (\[\w+\]))?\n")
VENDORS = ROOT / "tests" / "data" / "vendors"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Copy what the guide changes or reads: schema, code and examples; `raw` is empty."""
    for folder in ("schema", "pipeline", "tests/data/vendors"):
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    (tmp_path / "raw").mkdir()
    return tmp_path


def run_shell(checkout: Path, commands: str) -> str:
    """Run shell commands in the checkout and return what they print."""
    script = f'ipu-results() {{ "{sys.executable}" -m ipu_results "$@"; }}\n{commands}'
    env = {**os.environ, "PYTHONPATH": str(checkout / "pipeline")}
    done = subprocess.run(
        ["bash", "-c", script],
        stdout=-1,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=checkout,
        env=env,
        check=False,
    )
    return done.stdout


def edit_file(checkout: Path, block: str) -> None:
    """Do what a block says: add lines at the end of the file it names, or under a section, or
    replace drafted keys.
    """
    place = PLACE.match(block)
    assert place is not None
    path, lines = checkout / place[1], block[place.end() :]
    text = path.read_text(encoding="utf-8")
    if place[2] is not None:
        assert f"{place[2]}\n" in text
        text = text.replace(f"{place[2]}\n", f"{place[2]}\n{lines}")
    elif place[1].startswith("raw/"):
        for line in lines.splitlines():
            key = line.partition(" = ")[0]
            text, count = re.subn(rf'(?m)^{key} = "TODO.*$', line, text)
            assert count == 1, key
    else:
        text += lines
    path.write_text(text, encoding="utf-8")


def test_guide_is_what_happens_when_it_is_followed(checkout: Path) -> None:
    shutil.copytree(RAW, checkout / "raw", dirs_exist_ok=True)
    output = ""

    def follow(match: re.Match[str]) -> str:
        nonlocal output
        language, block = match.groups()
        if language == "sh":
            output = run_shell(checkout, block)
        elif language == "toml":
            edit_file(checkout, block)
        else:
            block = re.sub(r" +$", "", output, flags=re.M)
        return f"```{language}\n{block}```"

    check_page(PAGE, BLOCK.sub(follow, PAGE.read_text(encoding="utf-8")))
    rows = query_rows(
        checkout / "warehouse",
        "SELECT precision, activation_bits, weight_bits, throughput, latency_ms "
        "FROM results WHERE document_id = 'lumen-l2-2026' ORDER BY row_number",
    )
    assert rows == [
        ("FP8", 8, 8, 81920, 0.78125),
        ("FP8", 8, 8, 90112, 1.4205),
        ("FP8", 8, 8, 12288, 1.302),
    ]


FIELDS = {
    "kepler.csv": {"Hardware": "platform"},
    "orbit.txt": {
        "Workload": "model",
        "Cluster": "platform",
        "Toolkit": "framework",
        "Global batch": "batch_size",
        "Rate": "throughput",
    },
}
ROWS = {
    "kepler.csv": [
        ("ResNet-50 v1.5", "Kepler K9 server", 32, 10240.0, "image", 3.125),
        ("EfficientNet-B4", "Kepler K9 server", 8, 1536.0, "image", 5.2),
    ],
    "orbit.txt": [("Orbit-LM 7B", "Orbit O1 pod", 512, 1048576.0, "token", None)],
}


@pytest.mark.parametrize("name", FIELDS)
def test_page_of_another_layout_becomes_rows_with_data_only(checkout: Path, name: str) -> None:
    file = f"raw/{Path(name).stem}/a-page{Path(name).suffix}"
    (checkout / file).parent.mkdir()
    shutil.copyfile(VENDORS / name, checkout / file)
    draft = (
        run_shell(checkout, f"ipu-results add {file}").split("run again:\n")[1].split("error: ")[0]
    )
    for column, field in FIELDS[name].items():
        draft, count = re.subn(rf'(?m)^("?{column}"?) = "TODO.*$', rf'\1 = "{field}"', draft)
        assert count == 1
    draft = draft.replace("TODO: training or inference", "training")
    assert "TODO" not in draft
    edit_file(checkout, f"# schema/vocabulary/table_headers.toml\n{draft}")
    assert (
        "fill in title, publisher, url, published_on, retrieved_on, licence, note, means\n"
        in run_shell(checkout, f"ipu-results add {file}")
    )
    texts = "".join(f'{key} = "x"\n' for key in ("title", "publisher", "licence", "note", "means"))
    filled = f'{texts}url = "https://example.org"\npublished_on = 2026-05-01\nretrieved_on = 2026-05-02\n'
    edit_file(checkout, f"# {file}.toml\n{filled}")
    output = run_shell(checkout, "ipu-results ingest")
    assert (
        query_rows(
            checkout / "warehouse",
            "SELECT model, platform, batch_size, throughput, item, latency_ms FROM results",
        )
        == ROWS[name]
    )
    refused = (
        "the unit of throughput counts token, but an item of ResNet-50 v1.5 is image"
        " (item-contradicts-model)"
    )
    assert (refused in output) is (name == "orbit.txt")
