"""Hold the size of the code: lines and modules of each package and of each folder of tests, from .ci/budget.toml.

usage: python .ci/budget.py [--write]      exits 1 if anything is larger than its figure; --write renews the figures

Lines are physical lines of Python files, blank ones and comments too. A module may have 400 lines and a function 100.
[long] names the older ones that are over that: they may not grow, and --write takes out those that have become short.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path.cwd()
BUDGET = ROOT / ".ci" / "budget.toml"
PACKAGES = ("pipeline/ipu_results", "tests")
MAX_MODULE, MAX_FUNCTION = 400, 100  # lines; what is longer has several subjects, and is read in pieces
ADVICE = "name what this replaces, or raise the figure in .ci/budget.toml in the same commit"


def measure_folders() -> dict[str, tuple[int, int]]:
    """Return lines and modules of each package; modules that are in no folder of their own count for the root."""
    sizes: dict[str, list[int]] = defaultdict(list)
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            inside = path.relative_to(ROOT / package).parts
            sizes["/".join((package, *inside[:-1][:1]))].append(count_lines(path))
    return {folder: (sum(lines), len(lines)) for folder, lines in sorted(sizes.items())}


def count_lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def find_long() -> Iterator[tuple[str, int]]:
    """Yield the modules and functions over the limits, with their lines."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if (lines := count_lines(path)) > MAX_MODULE:
                yield name, lines
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    lines = (node.end_lineno or node.lineno) - node.lineno + 1
                    if lines > MAX_FUNCTION:
                        yield f"{name}:{node.name}", lines


def main() -> int:
    """Compare the code with the budget, or write the budget, and return the exit status."""
    folders, long = measure_folders(), dict(find_long())
    budget = tomllib.loads(BUDGET.read_text(encoding="utf-8"))
    if "--write" in sys.argv[1:]:
        kept = {name: min(lines, long[name]) for name, lines in budget["long"].items() if name in long}
        rows = [f'"{name}" = {{ lines = {size[0]}, modules = {size[1]} }}' for name, size in folders.items()]
        rows = ["[folders]", *rows, "", "[long]", *(f'"{name}" = {lines}' for name, lines in sorted(kept.items()))]
        BUDGET.write_text("\n".join(rows) + "\n", encoding="utf-8")
        return 0
    grown = []
    for name, sizes in folders.items():
        figures = budget["folders"].get(name, {"lines": 0, "modules": 0})
        grown += [
            f"{name} has {size:,} {what}, its budget is {figures[what]:,}: {ADVICE}"
            for what, size in zip(("lines", "modules"), sizes, strict=True)
            if size > figures[what]
        ]
    for name, lines in long.items():
        limit = budget["long"].get(name, MAX_FUNCTION if ":" in name else MAX_MODULE)
        if lines > limit:
            grown.append(f"{name} has {lines} lines, at most {limit}: split it")
    for message in grown:
        print(message)
    shipped = [size for name, size in folders.items() if name.startswith(PACKAGES[0])]
    print(f"{PACKAGES[0]}: {sum(size[0] for size in shipped):,} lines in {sum(size[1] for size in shipped)} modules")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
