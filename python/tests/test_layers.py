"""No circular imports among the top-level modules of each Rust crate, nor among the files of the fast engine.

import-linter checks the Python modules.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import ROOT

CRATES = sorted(path.parent for path in (ROOT / "crates").glob("*/src") if (path / "lib.rs").exists())
#: Modules compiled for tests only.
TESTS = {"tests", "conformance", "bench", "script", "pipe", "decisions", "loops"}


def modules(crate: Path) -> dict[str, str]:
    """Returns the sources of each top-level module of a crate, without comments and tests."""
    sources: dict[str, str] = {}
    for path in sorted((crate / "src").rglob("*.rs")):
        parts = path.relative_to(crate / "src").with_suffix("").parts
        if parts == ("lib",) or TESTS & set(parts):
            continue
        text = re.sub(
            r"//.*", "", path.read_text().split("#[cfg(test)]\nmod ")[0].split("#[cfg(test)]\npub(crate) mod ")[0]
        )
        if len(parts) == 1 or parts[1:] == ("mod",):
            # The parent of a top-level module is the crate root.
            text = re.sub(r"\bsuper::", "crate::", text)
        sources[parts[0]] = sources.get(parts[0], "") + text
    return sources


def imports(sources: dict[str, str]) -> dict[str, set[str]]:
    """For each module, returns the other modules that it names."""
    found: dict[str, set[str]] = {}
    for name, text in sources.items():
        named = set(re.findall(r"\bcrate::(\w+)", text))
        for group in re.findall(r"\bcrate::\{(.*?)\};", text, re.DOTALL):
            named |= set(re.findall(r"(?:^|[,{\s])(\w+)(?=::|,|\s|$)", group))
        found[name] = (named & sources.keys()) - {name}
    return found


def circle(found: dict[str, set[str]]) -> list[str]:
    """Returns modules that import each other in a cycle; empty if there is no cycle."""
    left = {name: set(others) for name, others in found.items()}
    while ground := [name for name, others in left.items() if not others & left.keys()]:
        for name in ground:
            del left[name]
    while roof := [name for name in left if not any(name in others for others in left.values())]:
        for name in roof:
            del left[name]
    return sorted(f"{name} -> {', '.join(sorted(others & left.keys()))}" for name, others in left.items())


def files(folder: Path) -> dict[str, str]:
    """Returns the source of each file below a folder by the path of its module, without comments and tests."""
    sources: dict[str, str] = {}
    for path in sorted(folder.rglob("*.rs")):
        parts = path.relative_to(folder).with_suffix("").parts
        name = "::".join(parts[:-1] if parts[-1] == "mod" else parts)
        sources[name] = re.sub(r"//.*", "", path.read_text().split("#[cfg(test)]\nmod ")[0])
    return sources


def file_imports(sources: dict[str, str], root: str) -> dict[str, set[str]]:
    """For each file of a folder whose module is `root`, returns the other files that it imports."""
    found: dict[str, set[str]] = {}
    for name, text in sources.items():
        steps = name.split("::") if name else []
        paths = [path.split("::") for path in re.findall(rf"\b{root}::([\w:]+)", text)]
        for ups, path in re.findall(r"\b((?:super::)+)([\w:]+)", text):
            if (up := ups.count("super")) <= len(steps):
                paths.append(steps[: len(steps) - up] + path.split("::"))
        # `use` can name a child module without its parent.
        paths += [[*steps, child] for child in re.findall(r"\buse (\w+)::", text)]
        modules = {
            max(("::".join(path[:i]) for i in range(len(path) + 1) if "::".join(path[:i]) in sources), key=len)
            for path in paths
        }
        found[name] = modules - {name}
    return found


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_rust_modules_do_not_import_each_other_in_a_cycle(crate: Path) -> None:
    assert circle(imports(modules(crate))) == []


def test_the_import_check_finds_a_cycle() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == ["b -> c", "c -> b"]


def test_files_of_the_fast_engine_do_not_import_each_other_in_a_cycle() -> None:
    folder = ROOT / "crates" / "celltrain-core" / "src" / "engine" / "fast"
    found = file_imports(files(folder), "crate::engine::fast")
    assert {"links", "fabric"} <= found["egress"]
    assert {"port"} == {name.removeprefix("train_port::") for name in found["train_port::in_step"] if "::" in name}
    assert circle(found) == []


def test_the_import_check_counts_a_file_that_imports_from_its_parent_module_as_a_cycle() -> None:
    sources = {"": "use a::A;", "a": "use b::B; struct A;", "a::b": "use super::A; use super::super::c::C;", "c": ""}
    assert circle(file_imports(sources, "crate::x")) == ["a -> a::b", "a::b -> a"]
