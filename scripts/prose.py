"""Counts constructions in prose that make English hard to read, per 1,000 words; fails above a limit.

    python scripts/prose.py              the density of each kind of text; exit code 1 if one is above the limit
    python scripts/prose.py FILE...      every hit in these files, with its line and kind

Text means comments, docstrings, strings, names of tests, and Markdown with its tables. docs/design/libraries.md says why
this is not Vale. A hit is a hint: rewrite the sentence, not the pattern.
"""

from __future__ import annotations

import io
import itertools
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]

#: Maximum number of hits per 1,000 words in each kind of text.
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
    "is no": r"(?<![Tt]here )\b(?:is|are) no (?!longer|more|less|need|way|better|worse|such|one)[a-z]+\b(?=[^.]*\.)",
    "inverted ending": (
        r"\bso (?:is|are|does|do|has|have) (?:it|they|the|those|that)\b|\bas (?:is|are|does|do) the\b|\band its like\b"
    ),
}
COMPILED = {name: re.compile(pattern, re.MULTILINE) for name, pattern in PATTERNS.items()}

#: Texts by other people, this list itself, and changelog entries of released versions.
SKIPPED = {"CHANGELOG.md", "scripts/prose.py", "python/tests/test_prose.py"}

#: Single passages with fewer words in a row are names, numbers or code.
SENTENCE = re.compile(r"[A-Za-z]{2,} [a-z]+ [a-z]+")

RUST_STRING = re.compile(r'''//[^\n]*|'\\?"'|r#"(.*?)"#|"((?:[^"\\]|\\.)*)"''', re.DOTALL)
LITERAL = re.compile(r"""^[rbfuRBFU]*('{3}|"{3}|'|")(.*)\1$""", re.DOTALL)
TEST_NAME = re.compile(r"#\[(?:test|rstest)\][^{;]*?fn (\w+)|^ *(?:async )?def test_(\w+)", re.MULTILINE)

#: The text on a line, with the line's number.
Passages = Iterator[tuple[int, str]]


def markdown(text: str) -> Passages:
    """Yields the prose of a page, without code and tables."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        fence = line.startswith("```")
        fenced ^= fence
        if not (fence or fenced or line.lstrip().startswith("|") or line.startswith("<!--")):
            yield number, unlinked(line)


def cells(text: str) -> Passages:
    """Yields the cells of a page's tables."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("|"):
            yield from ((number, unlinked(cell).strip()) for cell in line.strip().strip("|").split("|"))


def unlinked(text: str) -> str:
    """Returns Markdown with the text of links in place of the links."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)


def python(text: str) -> Passages:
    """Yields the comments and docstrings of a module."""
    for token, documents in tokens(text):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#!: ")
        elif documents:
            lines = enumerate(token.string.split("\n"), token.start[0])
            yield from ((number, line.strip().strip("\"'")) for number, line in lines)


def python_strings(text: str) -> Passages:
    """Yields the strings of a module that are not docstrings. Adjacent literals are one string."""
    lines = text.split("\n")
    joined, number = "", 0
    begun, depth = (0, 0), 0
    for token, documents in tokens(text):
        kind = tokenize.tok_name[token.type]
        if depth == 0:
            begun = token.start
        # Python 3.12 splits f-strings into parts.
        depth += {"FSTRING_START": 1, "FSTRING_END": -1}.get(kind, 0)
        if depth == 0 and not documents and kind in ("STRING", "FSTRING_END"):
            number = number or begun[0]
            literal = lines[begun[0] - 1 : token.end[0]]
            literal[-1] = literal[-1][: token.end[1]]
            literal[0] = literal[0][begun[1] :]
            joined += LITERAL.sub(r"\2", "\n".join(literal))
        elif depth == 0 and number and kind not in ("NL", "COMMENT"):
            yield number, joined
            joined, number = "", 0


def tokens(text: str) -> Iterator[tuple[tokenize.TokenInfo, bool]]:
    """Yields the tokens of a module. The flag is true if the token is a string that is a statement."""
    statement = True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        yield token, statement and token.type == tokenize.STRING
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            statement = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)


def slashes(text: str) -> Passages:
    """Yields the comments of a Rust or TypeScript file."""
    fenced, block = False, False
    for number, line in enumerate(text.split("\n"), 1):
        if block or line.lstrip().startswith("/*"):
            body = re.sub(r"^\s*(?:/\*+|\*+/?)\s?", "", line).split("*/")[0]
            block = "*/" not in line
        else:
            found = re.match(r"\s*//[/!]? ?(.*)", line)
            body = found[1] if found else ""
        fence = body.startswith("```")
        fenced ^= fence
        if not (fence or fenced):
            yield number, body


def rust_strings(text: str) -> Passages:
    """Yields the strings of a Rust file."""
    for found in RUST_STRING.finditer(text):
        body = re.sub(r"\\\n\s*", "", found[1] or found[2] or "")
        yield text.count("\n", 0, found.start()) + 1, body.replace("\n", " ")


def names_of_tests(text: str) -> Passages:
    """Yields the names of tests as sentences."""
    for found in TEST_NAME.finditer(text):
        yield text.count("\n", 0, found.end()) + 1, (found[1] or found[2]).replace("_", " ").capitalize()


def hashes(text: str) -> Passages:
    """Yields the comments of a configuration file or script."""
    for number, line in enumerate(text.split("\n"), 1):
        found = re.search(r"(?:^|\s)#+ (.*)", line)
        yield number, found[1] if found and not line.startswith("#!") else ""


class Kind(NamedTuple):
    """A kind of text: the names of its files, its reader, and true if each passage is a text of its own."""

    name: str
    files: re.Pattern[str]
    read: Callable[[str], Passages]
    single: bool = False


KINDS = [
    Kind("pages", re.compile(r"\.md$"), markdown),
    Kind("table cells", re.compile(r"\.md$"), cells, single=True),
    Kind("comments in Python", re.compile(r"\.py$"), python),
    Kind("strings in Python", re.compile(r"^(?!.*\btests/).*\.py$"), python_strings, single=True),
    Kind("comments in Rust", re.compile(r"\.rs$"), slashes),
    Kind("strings in Rust", re.compile(r"\.rs$"), rust_strings, single=True),
    Kind("comments in TypeScript", re.compile(r"\.tsx?$"), slashes),
    Kind("test names", re.compile(r"\.(?:rs|py)$"), names_of_tests, single=True),
    Kind("comments in configuration", re.compile(r"\.(?:toml|ya?ml|sh)$|Makefile$|\.ci/run$"), hashes),
]


def hits(kind: Kind, text: str) -> tuple[int, list[tuple[int, str, str]]]:
    """Returns the number of words of this kind in a file, and the line, pattern and beginning of every hit."""
    read, starts = "", []
    for (number, body), (_, following) in itertools.pairwise([*kind.read(text), (0, "")]):
        if kind.single and not SENTENCE.search(body):
            continue
        starts.append((len(read), number))
        read += re.sub(r"`[^`]*`|\{[^}]*\}" if kind.single else r"`[^`]*`", "X", body)
        # Join the lines of a paragraph, so that patterns match across line breaks.
        joined = body.strip() and following.strip() and not re.match(r"\s*(?:[-*#>]|\d+\.)", following)
        read += ".\n" if kind.single else " " if joined else "\n"
    found = [
        (
            max(number for start, number in starts if start <= match.start()),
            name,
            " ".join(read[match.start() : match.start() + 100].split()),
        )
        for name, pattern in COMPILED.items()
        for match in pattern.finditer(read)
    ]
    return len(read.split()), sorted(found)


def main(arguments: list[str]) -> int:
    """Prints the hits in the given files, or the density of hits in every kind of text of the checkout."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    names = arguments or [name for name in listed.splitlines() if name not in SKIPPED and (ROOT / name).is_file()]
    worst = 0.0
    for kind in KINDS:
        words = count = 0
        for name in filter(kind.files.search, names):
            path = Path(name) if arguments else ROOT / name
            size, found = hits(kind, path.read_text(encoding="utf-8"))
            words += size
            count += len(found)
            for line, pattern, excerpt in found if arguments else ():
                print(f"{name}:{line}: {kind.name}: {pattern}: {excerpt}")
        density = 1000 * count / max(words, 1)
        if not arguments:
            print(f"{kind.name:25} {density:4.1f} hits in 1,000 words ({count} in {words:,})")
            worst = max(worst, density)
    if worst > LIMIT:
        print(f"At most {LIMIT} hits in 1,000 words are allowed.", file=sys.stderr)
    return 1 if worst > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
