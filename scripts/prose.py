"""Counts constructions in prose that make English hard to read, per 1,000 words; fails above a limit.

    python scripts/prose.py              the density of each kind of file; exit code 1 above the limit
    python scripts/prose.py FILE...      every hit in these files, with its line

Prose means comments, Python docstrings, and Markdown outside code and tables. docs/design/libraries.md says why this is
not Vale. A hit is a hint: rewrite the sentence, not the pattern.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]

#: Maximum number of hits per 1,000 words in each kind of file.
LIMIT = 1.5

PATTERNS = {
    "headless clause": (
        r"(?:^|(?<=[.:;] ))(?:What|Who|Whose|Whether|How (?:far|fast|well|many|much|long)|Where|From when|Whatever|Whoever"
        r"|Of (?:each|these|all|what|which))\b(?![^.?!]*\?)[^.?!]{3,160}[.!]"
    ),
    "what or who as a noun": (
        r"\b(?:of|for|from|by|with|to|than|as|beside|and|or|in|at|on) (?:what|who|whoever|whatever)\b"
        r"(?! (?:extent|degree|follows))"
    ),
    "that of": r"(?:^|(?<=[.:;,] ))(?:That|Those|The same) (?:of|for|where|with)\b",
    "stands": (
        r"\b(?:stands?|stood) (?:in|at|under|on|beside|below|above|there|here|for itself|behind|before|as|alone|side|once"
        r"|twice)\b"
    ),
    "passive told, said, asked": (
        r"\b(?:is|are|be|was|were|been) (?:told|said|asked|handed)\b(?! to\b)|\b(?:says?|said) so\b"
        r"|\btells? (?:it|them|what|which|of)\b"
    ),
    "so many": r"\bso many\b(?! that)|\bas many as there are\b",
    "archaic word": (
        r"\banew\b|\bbeside\b|\bseldom\b|\blikewise\b|\bat last\b|\bnobody\b|\bsomebody\b|\bin vain\b|\bthereof\b"
        r"|\bupon the other\b"
    ),
    "goes on, comes of": (
        r"\bgo(?:es|ne)? on (?:with|where|in|by)\b|\b(?:comes?|came) of\b|\bwhat (?:there|it) is\b|\bas (?:there|they) are\b"
        r"|\bis to be (?:had|seen|found)\b|\bcannot be had\b"
    ),
    "is no": r"\b(?:is|are) no (?!longer|more|less|need|way|better|worse|such|one)[a-z]+\b(?=[^.]*\.)(?<!there is no)",
    "inverted ending": (
        r"\bso (?:is|are|does|do|has|have) (?:it|they|the|those|that)\b|\bas (?:is|are|does|do) the\b|\band its like\b"
    ),
}
COMPILED = {name: re.compile(pattern, re.MULTILINE) for name, pattern in PATTERNS.items()}

#: Texts by other people, this list itself, and changelog entries of released versions.
SKIPPED = {"CHANGELOG.md", "scripts/prose.py", "python/tests/test_prose.py"}


def markdown(text: str) -> list[str]:
    """Returns the prose in each line of a page."""
    lines, fenced = [], False
    for line in text.split("\n"):
        fence = line.startswith("```")
        fenced ^= fence
        hidden = fence or fenced or line.lstrip().startswith("|") or line.startswith("<!--")
        lines.append("" if hidden else re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line))
    return lines


def python(text: str) -> list[str]:
    """Returns the comments and docstrings in each line of a module."""
    lines = [""] * (text.count("\n") + 2)
    statement = True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        row = token.start[0] - 1
        if token.type == tokenize.COMMENT:
            lines[row] = token.string.lstrip("#!: ")
        elif token.type == tokenize.STRING and statement:
            for offset, line in enumerate(token.string.split("\n")):
                lines[row + offset] = line.strip().strip("\"'")
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            statement = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)
    return lines


def slashes(text: str) -> list[str]:
    """Returns the comments in each line of a Rust or TypeScript file."""
    lines, fenced, block = [], False, False
    for line in text.split("\n"):
        if block or line.lstrip().startswith("/*"):
            body = re.sub(r"^\s*(?:/\*+|\*+/?)\s?", "", line).split("*/")[0]
            block = "*/" not in line
        else:
            found = re.match(r"\s*//[/!]? ?(.*)", line)
            body = found[1] if found else ""
        fence = body.startswith("```")
        fenced ^= fence
        lines.append("" if fence or fenced else body)
    return lines


KINDS = {
    ".md": ("pages", markdown),
    ".py": ("Python", python),
    ".rs": ("Rust", slashes),
    ".ts": ("TypeScript", slashes),
    ".tsx": ("TypeScript", slashes),
}


def hits(path: Path) -> tuple[int, list[tuple[int, str, str]]]:
    """Returns a file's number of words, and the line, pattern and beginning of every hit."""
    lines = [re.sub(r"`[^`]*`", "X", line) for line in KINDS[path.suffix][1](path.read_text(encoding="utf-8"))]
    text, starts = "", []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        starts.append(len(text))
        # Join the lines of a paragraph, so that patterns match across line breaks.
        joined = line.strip() and following.strip() and not re.match(r"\s*(?:[-*#>]|\d+\.)", following)
        text += line + (" " if joined else "\n")
    found = [
        (sum(start <= match.start() for start in starts), name, text[match.start() : match.start() + 100].strip())
        for name, pattern in COMPILED.items()
        for match in pattern.finditer(text)
    ]
    return len(text.split()), sorted(found)


def main(arguments: list[str]) -> int:
    """Prints the hits in the given files, or the density of hits in every kind of file of the checkout."""
    for name in arguments:
        for line, pattern, excerpt in hits(Path(name))[1]:
            print(f"{name}:{line}: {pattern}: {excerpt}")
    if arguments:
        return 0
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    words: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for name in listed.splitlines():
        path = ROOT / name
        if path.suffix in KINDS and path.is_file() and name not in SKIPPED:
            kind = KINDS[path.suffix][0]
            size, found = hits(path)
            words[kind] += size
            counts[kind] += len(found)
    worst = 0.0
    for kind, size in words.items():
        density = 1000 * counts[kind] / size
        worst = max(worst, density)
        if density > LIMIT:
            print(f"{kind}: {density:.1f} hits in 1,000 words of prose, at most {LIMIT} are allowed", file=sys.stderr)
    return 1 if worst > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
