"""Version, address and names agree in every file that states them; `make docs` writes them from
pyproject.toml.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import ipu_results
import pytest
import yaml
from ipu_results.kit.extras import EXTRAS
from ipu_results.kit.text import format_json, format_markdown_table
from ipu_results.release.version import parse_version

from tests.conftest import ROOT
from tests.docs.docs_support import REFERENCE, check_page, check_part

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
CITATION = ROOT / "CITATION.cff"
REPOSITORY = PROJECT["urls"]["Repository"]
AUTHOR = PROJECT["authors"][0]["name"]
DESCRIPTION = (
    "Published, official, measured and emulated results of Graphcore IPUs and what they were"
    " compared with. Each figure is exactly as printed, with the place where it stands; what looks"
    " wrong is flagged, not repaired."
)


def read_citation() -> dict[str, Any]:
    citation = yaml.safe_load(CITATION.read_text(encoding="utf-8"))
    assert isinstance(citation, dict)
    return citation


def describe_deposit(citation: dict[str, Any]) -> dict[str, Any]:
    """Return what Zenodo reads from .zenodo.json."""
    return {
        "title": citation["title"],
        "upload_type": "dataset",
        "description": DESCRIPTION,
        "creators": [{"name": AUTHOR}],
        "license": citation["license"].lower(),
        "version": PROJECT["version"],
        "keywords": citation["keywords"],
        "related_identifiers": [
            {
                "identifier": REPOSITORY,
                "relation": "isSupplementTo",
                "resource_type": "software",
                "scheme": "url",
            }
        ],
    }


def describe_software() -> dict[str, Any]:
    """Return the description of the pipeline in CodeMeta 3.0."""
    return {
        "@context": "https://w3id.org/codemeta/3.0",
        "type": "SoftwareSourceCode",
        "name": PROJECT["name"],
        "description": PROJECT["description"],
        "version": PROJECT["version"],
        "author": [{"type": "Organization", "name": AUTHOR}],
        "license": [
            f"https://spdx.org/licenses/{name}" for name in PROJECT["license"].split(" AND ")
        ],
        "url": REPOSITORY,
        "codeRepository": REPOSITORY,
        "issueTracker": PROJECT["urls"]["Issues"],
        "softwareHelp": PROJECT["urls"]["Documentation"],
        "releaseNotes": PROJECT["urls"]["Changelog"],
        "programmingLanguage": "Python",
        "runtimePlatform": f"Python {PROJECT['requires-python']}",
        "operatingSystem": "Linux",
        "softwareRequirements": PROJECT["dependencies"],
        "keywords": PROJECT["keywords"],
    }


@pytest.mark.docs
def test_citation_deposit_and_code_description_state_the_version_of_the_project() -> None:
    text = CITATION.read_text(encoding="utf-8")
    check_page(CITATION, re.sub(r"(?m)^version: .*$", f"version: {PROJECT['version']}", text))
    citation = read_citation()
    assert citation["authors"] == [{"name": AUTHOR}]
    assert citation["url"] == citation["repository-code"] == REPOSITORY
    assert "doi" not in citation  # none was given to the dataset
    check_page(ROOT / ".zenodo.json", format_json(describe_deposit(citation)) + "\n")
    check_page(ROOT / "codemeta.json", format_json(describe_software()) + "\n")


# package, list of pins, what it reads
READERS = (
    ("duckdb", "requirements.lock", "every table and view of the DuckDB file, Parquet and CSV"),
    (
        "duckdb",
        "tests/duckdb-1.2.2.txt",
        "every table and view of the DuckDB file, Parquet and CSV",
    ),
    ("pandas", "requirements.lock", "Parquet and CSV, with default options"),
    ("pyarrow", "requirements.lock", "Parquet"),
    ("polars", "requirements.lock", "Parquet and CSV, with default options"),
    (
        "frictionless",
        "tests/readers.txt",
        "datapackage.json, with every CSV file, and bytes and hash of Parquet",
    ),
    ("datasets", "tests/readers.txt", "the folder, each configuration of the card"),
    (
        "mlcroissant",
        "tests/readers.txt",
        "croissant.json, with records of tables and views, in any order",
    ),
    ("sqlite-utils", "tests/readers.txt", "every CSV file"),
)


@pytest.mark.docs
def test_docs_name_the_versions_of_the_readers_that_are_tested() -> None:
    rows = []
    for name, pins, what in READERS:
        version = re.search(rf"(?m)^{name}==([^ ;]+)", (ROOT / pins).read_text(encoding="utf-8"))
        assert version, name
        rows.append((name, version[1], what))
    table = format_markdown_table(("reader", "version", "what it reads"), rows)
    check_part(REFERENCE / "release.md", "readers", table)


INDIRECT = {
    "anyio",
    "google",
    "jsonschema",
    "markupsafe",
    "mcp_types",
    "pdfminer",
    "pypdfium2",
    "urllib3",
}
DISTRIBUTIONS = {
    "PIL": "pillow",
    "pynvml": "nvidia-ml-py",
    "vl_convert": "vl-convert-python",
}
DISTRIBUTIONS |= {"pandera": "pandera[io,pandas]"}
DISTRIBUTIONS["confusable_homoglyphs"] = "confusable-homoglyphs"


def list_packages(extra: str) -> set[str]:
    """Return the packages of an extra, and of the extras that it names."""
    packages = {re.split(r"[<>=]", item)[0] for item in PROJECT["optional-dependencies"][extra]}
    own = [name for item in packages for name in re.findall(r"ipu-results\[(.+)\]", item)]
    return packages.union(*(list_packages(name) for names in own for name in names.split(",")))


def test_every_extra_that_a_message_may_name_brings_the_package() -> None:
    for module, extras in EXTRAS.items():
        package = DISTRIBUTIONS.get(module, module)
        for extra in extras.split():
            assert {package, f"{package}[http]"} & list_packages(extra)


def test_every_imported_package_belongs_to_the_core_or_to_an_extra() -> None:
    core = {"numpy"}  # which comes with pandas
    for requirement in PROJECT["dependencies"]:
        core.add(re.split(r"[<>=]", requirement)[0].replace("-", "_"))
    imported = set()
    for path in (ROOT / "pipeline").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add((node.module or "").partition(".")[0])
    known = core | EXTRAS.keys() | sys.stdlib_module_names | {"ipu_results"}
    assert imported - known == INDIRECT


def test_package_has_the_version_of_the_project() -> None:
    assert ipu_results.__version__ == PROJECT["version"]


def test_no_release_is_newer_than_the_project() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"(?m)^## \[(\d+\.\d+\.\d+)", changelog)
    released += [path.stem for path in (ROOT / "docs" / "releases").glob("*.json")]
    newest = parse_version(PROJECT["version"])
    assert [version for version in released if parse_version(version) > newest] == []


@pytest.mark.parametrize(("has_release", "folder"), [(True, "release"), (False, "warehouse")])
def test_make_site_takes_the_release_at_hand(
    has_release: bool, folder: str, tmp_path: Path
) -> None:
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    if has_release:
        (tmp_path / "release").mkdir()
        (tmp_path / "release" / "release.json").touch()
    plan = subprocess.check_output(["make", "--dry-run", "site"], cwd=tmp_path, text=True)
    assert f'-m ipu_results.doors.site "{folder}" site/build/new/data' in plan
