"""Makes untrusted text, such as names, paths and values, safe for messages, screens, figures and spreadsheets.

A scenario may come from anybody. Terminals, browsers, spreadsheets and the typesetter of figures must show its texts
and never execute them. `docs/errors.md` describes each case.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

#: Maximum length of a value in a message, and of a whole clause; longer texts are cut in the middle.
MOST_VALUE = 100
MOST_CLAUSE = 1000
#: Maximum length of a CSV cell that Excel accepts. A series repeats the name of its port in every row.
MOST_CELL = 32_767

#: Problem reported for a text that cannot be encoded in UTF-8.
BROKEN = "contains an incomplete character (a lone surrogate), which UTF-8 cannot write"

# A cell of a spreadsheet that begins with one of these characters is a formula, unless the mark precedes it. Numbers need
# no mark.
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")  # noqa: RUF001
_MARK = "'"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def shown(text: str | os.PathLike[str]) -> str:
    r"""Returns a text or a path as one line of visible characters; others are escaped as in Python.

    Escaped are control characters (terminal commands begin with one), line ends, and characters that change the writing
    direction or have no width.

    >>> print(shown("tcp\x1b[31m1\n"), shown("x\u202ey"))
    tcp\x1b[31m1\n x\u202ey
    """
    if not isinstance(text, str):
        text = os.fsdecode(text)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def lines(text: str) -> str:
    """Applies `shown` to each line of a text."""
    return "\n".join(map(shown, text.split("\n")))


def shortened(text: str, most: int = MOST_VALUE) -> str:
    """Returns a text. If it is long, returns only its beginning and end, with its length.

    >>> shortened("9" * 1000000 + "Mbps", 40)
    '9999999... (1,000,004 in all) ...999Mbps'
    """
    if len(text) <= most:
        return text
    note = f"... ({len(text):,} in all) ..."
    ends = max(most - len(note), 2)
    return text[: ends - ends // 2] + note + text[-(ends // 2) :]


#: Finds half of a surrogate pair in a text, which UTF-8 cannot encode.
half_pair = re.compile("[\ud800-\udfff]").search


def key_path(path: str, key: str | int) -> str:
    """Returns the path of a key in a table, or of a place in a list; quoted as in TOML if necessary.

    >>> print(key_path('link."sw1->sw2".delay', 0), key_path("link", "sw1->sw2"))
    link."sw1->sw2".delay[0] link."sw1->sw2"
    """
    if isinstance(key, int):
        return f"{path}[{key}]"
    name = key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)
    return f"{path}.{name}" if path else name


def broken_texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    r"""Yields the texts in tables and lists that UTF-8 cannot encode, with their paths.

    >>> list(broken_texts({"links": [{"name": "a\ud800"}]}))
    [('links[0].name', 'a\ud800')]
    """
    if isinstance(value, str) and half_pair(value):
        yield path, value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from broken_texts(key, path)
            yield from broken_texts(one, key_path(path, str(key)))
    elif isinstance(value, list | tuple):
        for place, one in enumerate(value):
            yield from broken_texts(one, key_path(path, place))


def described(value: object) -> str:
    """Describes any Python value for a message; never fails, and is fast for large values.

    >>> described([1, 2]), described("epd"), described(10**5000)
    ('[1, 2]', "'epd'", 'a value of the type int')
    """
    # Never format a whole list, which may have a hundred thousand links.
    brief = reprlib.Repr()
    brief.maxstring = brief.maxother = brief.maxlong = 2 * MOST_VALUE
    try:
        whole = repr(value) if isinstance(value, str | int | float | type) else brief.repr(value)
    except Exception:
        whole = f"a value of the type {type(value).__name__}"
    return shortened(whole)


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Returns the known name that was probably meant; empty if no name is similar.

    >>> nearest("lan-6", ["lan-5", "wan-5"]), nearest("mesh", ["lan-5"]), nearest("LQD", ["longest_queue_drop"])
    ('lan-5', '', 'longest_queue_drop')
    >>> nearest("edp", ["red", "epd"])
    'epd'
    """
    known = list(known)
    written = re.sub(r"[-_ ]+", "_", name.lower())
    # Users write the policies of papers as LQD or DT.
    for one in known:
        if "_" in one and written == "".join(part[:1] for part in one.split("_")):
            return one
    close = difflib.get_close_matches(name, known, n=5, cutoff=cutoff)
    # Two swapped letters are likelier than one wrong letter.
    swapped = [one for one in close if sorted(one) == sorted(name)]
    return next(iter(swapped + close), "")


def among(name: str, known: Iterable[str]) -> str:
    """Returns a clause about an unknown name: a similar name, if there is one, and all known names.

    >>> among("lan-6", ["lan-5", "wan-5"]), among("mesh", ["lan-5"])
    ('did you mean lan-5? Choose from lan-5, wan-5', 'choose from lan-5')
    """
    names = list(known)
    near, listed = nearest(name, names), ", ".join(names) or "none"
    return f"did you mean {near}? Choose from {listed}" if near else f"choose from {listed}"


def as_json(value: Any, *, indent: int | None = 2) -> str:
    r"""Writes an answer as JSON. Invisible characters are escaped; JSON parsers read the same text.

    >>> as_json({"name": "x\x9b1m"}, indent=None) == '{"name": "x' + "\\" + 'u009b1m"}'
    True
    """
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c == "\n" or c.isprintable() else json.dumps(c)[1:-1] for c in text)


def cell(text: str) -> str:
    r"""Writes a text as a CSV cell, with an apostrophe if a spreadsheet would run it as a formula.

    Numbers stay numbers. Invisible characters are escaped, except tabs and line ends, which CSV can contain. Readers
    recover all other texts by removing one leading apostrophe, unless a text is too long for a cell.

    >>> cell("=1+1"), cell("-1.5"), cell("epd"), cell("'90s"), cell("x\x1b[2J")
    ("'=1+1", '-1.5', 'epd', "''90s", 'x\\x1b[2J')
    """
    if not text.isprintable():
        text = "".join(c if c in "\t\r\n" else shown(c) for c in text)
    text = shortened(text, MOST_CELL - len(_MARK))
    if text.startswith(_MARK) or (text.startswith(_FORMULA) and not _NUMBER.fullmatch(text)):
        return _MARK + text
    return text
