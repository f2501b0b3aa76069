"""Checks that no modules of a Rust crate import each other in a cycle, nor parts of the fast engine.

cargo-modules resolves the imports of each module. Its own option `--acyclic` compares single items: a type and its
constructor are already a cycle.
"""

from __future__ import annotations

import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Modules whose children are compared, next to the crates.
PARENTS = ("celltrain_core::engine::fast",)
Imports = dict[str, set[str]]


def graph(crate: str, *options: str) -> str:
    """Returns the graph of uses among the items of a crate's library, for Graphviz."""
    command = [
        "cargo",
        "modules",
        "dependencies",
        "--lib",
        "--package",
        crate,
        "--no-externs",
        "--no-sysroot",
        *options,
    ]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def imports(graph: str, with_tests: str) -> Imports:
    """For each module, returns the other modules from which it imports.

    In a graph without tests, a module also has the imports of its tests.
    """
    modules = set(re.findall(r'^\s*"([^"]+)" \[label="[^"|]*mod\|', graph, re.MULTILINE))
    found: Imports = {module: set() for module in modules}
    for user, used in re.findall(r'^\s*"([^"]+)" -> "([^"]+)" \[label="uses"', with_tests, re.MULTILINE):
        # Items use the types of their signatures.
        if user in modules:
            while used not in modules and "::" in used:
                used = used.rpartition("::")[0]
            found[user] |= modules & {used}
    return found


def merged(found: Imports, parent: str) -> Imports:
    """Returns the imports of the modules below `parent`, each with all modules that it contains."""
    under = f"{parent}::"

    def child(module: str) -> str:
        return under + module.removeprefix(under).split("::")[0]

    children: Imports = {}
    for module, used in found.items():
        if module.startswith(under):
            own = children.setdefault(child(module), set())
            own |= {child(other) for other in used if other.startswith(under)} - {child(module)}
    return children


def cycle(found: Imports) -> list[str]:
    """Returns modules that import each other in a cycle, the first one also at the end; empty if there is no cycle."""
    try:
        TopologicalSorter({module: used - {module} for module, used in found.items()}).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def cycles(graph: str, with_tests: str) -> list[list[str]]:
    """Returns a cycle among a crate's top-level modules, and one among the children of each of `PARENTS`, if any."""
    root = re.search(r'^\s*"([^"]+)" \[label="crate\|', graph, re.MULTILINE)
    assert root, "a graph begins with its crate"
    found = imports(graph, with_tests)
    compared = (cycle(merged(found, parent)) for parent in (root[1], *PARENTS))
    return [found for found in compared if found]


def main() -> int:
    """Checks the given crates, or all; returns 1 if modules import each other in a cycle."""
    crates = sys.argv[1:] or sorted(path.parent.parent.name for path in ROOT.glob("crates/*/src/lib.rs"))
    failed = False
    for crate in crates:
        for found in cycles(graph(crate), graph(crate, "--cfg-test")):
            print(f"rust_modules: modules of {crate} import each other: {' -> '.join(found)}", file=sys.stderr)
            failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
