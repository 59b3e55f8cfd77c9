"""Check the imports: no cycle, none against the layers of .ci/layers.toml, none that ties a room
which somebody may take alone, and no class name defined twice.

usage: python .ci/imports.py

It exits with 1 and lists each violation that [known] in .ci/layers.toml does not explain.

Imports for types only and imports inside functions count like all others: two modules that name
each other's types cannot be understood apart, whenever they are loaded. The same cycles are
searched in the TypeScript of the page.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path.cwd()
PACKAGE = "ipu_results"
SOURCE = ROOT / "pipeline" / PACKAGE
PAGE = ROOT / "site" / "src"
TYPESCRIPT_IMPORT = re.compile(
    r"""\bfrom\s+["']\./([\w/-]+)["']"""
)  # `import("./x")` loads later: not counted

Graph = Mapping[str, set[str]]


def read_modules() -> dict[str, ast.Module]:
    """Return the syntax tree of each module by its name inside the package, `__init__` for the
    package itself.
    """
    trees = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        trees[name] = ast.parse(path.read_text(encoding="utf-8"))
    return trees


def find_imports(name: str, trees: Mapping[str, ast.Module]) -> Iterator[str]:
    """Yield the modules of the package that one module imports."""
    for node in ast.walk(trees[name]):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            targets = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for target in targets:
            root, _, inside = target.partition(".")
            # a name in a module: the longest part that is a module
            while inside and inside not in trees:
                inside = inside.rpartition(".")[0]
            if root == PACKAGE:
                yield inside or "__init__"


def find_page_imports() -> Graph:
    """Return what each TypeScript module of the page imports, by their names."""
    return {
        path.stem: set(TYPESCRIPT_IMPORT.findall(path.read_text("utf-8")))
        for path in sorted(PAGE.rglob("*.ts*"))
    }


def find_cycle(graph: Graph, what: str) -> Iterator[str]:
    """Yield one cycle, if there is one."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield f"cycle in {what}: {' <- '.join(error.args[1])}"


def find_layer(name: str, layers: list[str]) -> int | None:
    """Return the position of the longest layer that covers a module, None without one."""
    covering = [layer for layer in layers if f"{name}.".startswith(f"{layer}.")]
    return layers.index(max(covering, key=len)) if covering else None


def find_upward(graph: Graph, layers: list[str]) -> Iterator[str]:
    """Yield the imports of a higher layer, and the modules that have no layer."""
    positions = {}
    for name in graph:
        position = find_layer(name, layers)
        if position is None:
            yield f"{name} has no layer"
        else:
            positions[name] = position
    for name, position in positions.items():
        for target in sorted(graph[name] & positions.keys()):
            if positions[target] > position:
                yield f"{name} -> {target}"


def find_dependent(graph: Graph, alone: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield the imports of a room that somebody may take alone, of what is not listed for it."""
    for name, targets in graph.items():
        permitted = alone.get(name.partition(".")[0])
        if permitted is None:
            continue
        for target in sorted(targets):
            if target.partition(".")[0] not in permitted:
                yield f"{name} -> {target}: not alone"


def find_doubled(trees: Mapping[str, ast.Module]) -> Iterator[str]:
    """Yield the class names that two modules define."""
    homes = defaultdict(list)
    for name, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(name)
    yield from (
        f"class {name} in {' and '.join(homes[name])}"
        for name in sorted(homes)
        if len(homes[name]) > 1
    )


def main() -> int:
    """Print the violations that are not known and the known ones that are gone; return the exit
    status.
    """
    settings = tomllib.loads((ROOT / ".ci" / "layers.toml").read_text(encoding="utf-8"))
    trees = read_modules()
    graph = {name: set(find_imports(name, trees)) - {name} for name in trees}
    violations = {*find_cycle(graph, "Python"), *find_cycle(find_page_imports(), "TypeScript")}
    violations |= {*find_upward(graph, settings["layers"]), *find_doubled(trees)}
    violations |= {*find_dependent(graph, settings["alone"])}
    known = settings["known"]
    for violation in sorted(violations - known.keys()):
        print(f"{violation}: mend it, or add it with its reason to [known] in .ci/layers.toml")
    for violation in sorted(known.keys() - violations):
        print(f"{violation}: is mended, take it out of [known] in .ci/layers.toml")
    return 1 if violations ^ known.keys() else 0


if __name__ == "__main__":
    sys.exit(main())
