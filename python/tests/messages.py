"""Collects all error and warning messages for users from the source code."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

#: Python calls whose strings users see. They match by the last part of the name.
CALLS = re.compile(r"^(Fault|of_\w+|\w*Error|\w*Warning|warn|refused?|fault)$")

#: Rust calls and attributes of error types whose strings users see.
RUST_CALLS = re.compile(r"\b(?:fault\w*|Fault::\w+|refuse\w*|warn\w*|problem\w*|format!|error)\(")
RUST_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
RUST_CRATES = (
    "celltrain-formula",
    "celltrain-scenario",
    "celltrain-hosts",
    "celltrain-run",
    "celltrain-capture",
    "celltrain-py",
)


def is_sentence(text: str) -> bool:
    """Returns whether a string has at least three words."""
    return len(re.findall(r"[A-Za-z]{2,}", re.sub(r"\{[^}]*\}", "", text))) >= 3


def literal(node: ast.expr) -> str | None:
    """Returns the text of a string or an f-string, with placeholders in braces."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "{" + ast.unparse(part.value) + "}"  # type: ignore[attr-defined]
            for part in node.values
        )
    return None


def of_python() -> list[str]:
    """Returns the messages of the Python package, each with its module."""
    found = []
    for path in sorted((ROOT / "python/celltrain").rglob("*.py")):
        module = path.relative_to(ROOT / "python")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.targets[0], ast.Name)
                and node.targets[0].id == "problem"
            ):
                texts = [literal(node.value)]
            elif isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                texts = [literal(value) for value in node.args] if CALLS.match(name) else []
            else:
                continue
            found += [f"{module}: {text}" for text in texts if text and is_sentence(text)]
    return found


def of_rust() -> list[str]:
    """Returns the messages of the crates that read and run scenarios, each with its file."""
    found = []
    for path in sorted(file for crate in RUST_CRATES for file in (ROOT / "crates" / crate / "src").rglob("*.rs")):
        if "tests" in path.parts or path.name == "tests.rs":
            continue
        text = path.read_text(encoding="utf-8").split("#[cfg(test)]")[0]
        for call in RUST_CALLS.finditer(text):
            following = RUST_TEXT.search(text, call.end(), call.end() + 400)
            if following and is_sentence(following[1]) and not text[call.end() : following.start()].count(";"):
                message = re.sub(r"\\\n\s*", "", following[1])
                found.append(f"{path.relative_to(ROOT / 'crates')}: {message}")
    return list(dict.fromkeys(found))


@functools.cache
def listed() -> str:
    """Returns all messages, one per line."""
    return "\n".join([*of_python(), *of_rust()]).replace("\\\n", "") + "\n"
