"""Checks that no modules of a Rust crate import each other in a cycle, nor files of the fast engine.

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
#: Folders whose files are compared one by one.
BY_FILE = ("celltrain_core::engine::fast",)
Imports = dict[str, set[str]]


def graph(crate: str) -> str:
    """Returns the items of a crate's library without its tests, and what they use, in the language of Graphviz."""
    command = ["cargo", "modules", "dependencies", "--lib", "--package", crate, "--no-externs", "--no-sysroot"]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def imports(graph: str) -> Imports:
    """For each module, returns the other modules from which it imports."""
    modules = set(re.findall(r'^\s*"([^"]+)" \[label="[^"|]*mod\|', graph, re.MULTILINE))
    found: Imports = {module: set() for module in modules}
    for user, used in re.findall(r'^\s*"([^"]+)" -> "([^"]+)" \[label="uses"', graph, re.MULTILINE):
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


def cycles(graph: str) -> list[list[str]]:
    """Returns the cycles among a crate's top-level modules, and among the files of folders compared by file."""
    root = re.search(r'^\s*"([^"]+)" \[label="crate\|', graph, re.MULTILINE)
    assert root, "a graph begins with its crate"
    found = imports(graph)
    compared = [merged(found, root[1])]
    for folder in BY_FILE:
        compared.append({module: used for module, used in found.items() if module.startswith(folder)})
    return [found for found in map(cycle, compared) if found]


def main() -> int:
    """Checks the given crates, or all; returns 1 if modules import each other in a cycle."""
    crates = sys.argv[1:] or sorted(path.parent.parent.name for path in ROOT.glob("crates/*/src/lib.rs"))
    failed = False
    for crate in crates:
        for found in cycles(graph(crate)):
            print(f"rust_modules: modules of {crate} import each other: {' -> '.join(found)}", file=sys.stderr)
            failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
