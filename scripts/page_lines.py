"""Names the line of a page for each error that cargo reports in the code of a page about adding a model.

Reads cargo's output from a file or from standard input:

    cargo test --workspace 2>&1 | python3 scripts/page_lines.py
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACE = re.compile(r"(examples/adding-[\w./-]+):(\d+):\d+")
INCLUDE = re.compile(r"^```\{literalinclude\} (\S+)$((?:\n:.*)*)", re.MULTILINE)


def page_lines(output: str, root: Path = ROOT) -> list[str]:
    """For each place in an example that the output names, returns a message, in the order of the output."""
    return list(dict.fromkeys(_message(root, name, int(line)) for name, line in PLACE.findall(output)))


def _message(root: Path, name: str, line: int) -> str:
    for page in sorted((root / "docs").glob("adding-*.md")):
        text = page.read_text(encoding="utf-8")
        for include in INCLUDE.finditer(text):
            if (page.parent / include[1]).resolve() == (root / name).resolve() and _shows(
                root / name, include[2], line
            ):
                number = text.count("\n", 0, include.start()) + 1
                return f"{page.relative_to(root)}:{number}: the code of this page fails at {name}:{line}"
    return f"{name}:{line}: fails, and no page shows this line"


def _shows(path: Path, options: str, line: int) -> bool:
    """Returns whether a block with the given options shows the given line of a file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    first, last = (re.search(rf'^:{name}: "(.+)"$', options, re.MULTILINE) for name in ("start-after", "end-before"))
    if first and last:
        return _line_with(lines, first[1]) < line < _line_with(lines, last[1])
    return True


def _line_with(lines: list[str], mark: str) -> int:
    return next((number for number, text in enumerate(lines, start=1) if text.strip() == mark), 0)


if __name__ == "__main__":
    text = Path(sys.argv[1]).read_text(encoding="utf-8") if len(sys.argv) > 1 else sys.stdin.read()
    for message in page_lines(text):
        print(message, file=sys.stderr)
