"""The worker's side of the runner: Python 3.8, numpy and Pillow only, as PopART's wheels need it."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from tests.conftest import ROOT

SOURCE = ROOT / "pipeline" / "ipu_results"
WORKER_SIDE = (
    "__init__.py",
    "errors.py",
    "runner/__init__.py",
    "runner/worker.py",
    "runner/inputs.py",
    "runner/backends/__init__.py",
    "runner/backends/popart.py",
)


NEWER = ("removeprefix", "removesuffix", "cache", "is_relative_to", "pairwise", "StrEnum")


def remove_annotations(tree: ast.Module) -> ast.Module:
    """Keep what is executed: remove annotations and what only type checkers read."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
        if (
            isinstance(node, ast.If)
            and isinstance(node.test, ast.Name)
            and node.test.id == "TYPE_CHECKING"
        ):
            node.body = [ast.Pass()]
    return tree


def list_newer(source: str) -> list[str]:
    """List what Python 3.8 does not have, of what is likely to be used."""
    newer = []
    for node in ast.walk(remove_annotations(ast.parse(source, feature_version=(3, 8)))):
        match node:
            case ast.Attribute(attr=name) | ast.alias(name=name) if name in NEWER:
                newer.append(name)
            case ast.keyword(arg="strict" | "slots" | "kw_only" as name):
                newer.append(name)
            case ast.Subscript(
                value=ast.Name(id="list" | "dict" | "tuple" | "set" | "type" as name)
            ):
                newer.append(f"{name}[]")
            case ast.BinOp(op=ast.BitOr()):
                newer.append("|")
    return newer


@pytest.mark.parametrize("file", WORKER_SIDE)
def test_worker_side_is_python_3_8(file: str) -> None:
    source = (SOURCE / file).read_text(encoding="utf-8")
    assert list_newer(source) == []
    tree = ast.parse(source)
    futures = [
        node
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "__future__"
    ]
    assert futures or not any(isinstance(node, (ast.arg, ast.AnnAssign)) for node in ast.walk(tree))


def test_worker_side_needs_numpy_and_pillow_only() -> None:
    names = ("worker", "inputs", "backends.popart")
    modules = ", ".join(f"ipu_results.runner.{name}" for name in names)
    program = f"import sys, {modules}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    heavy = "popart pandas pyarrow onnx onnxruntime click duckdb msgspec psutil"
    assert not set(heavy.split()) & set(done.stdout.split())
