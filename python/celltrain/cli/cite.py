"""`celltrain cite` prints BibTeX entries of celltrain and of the papers that it reproduces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from celltrain import _core
from celltrain.cli import shell
from celltrain.papers.paper import PAPER, Description, describe, load

#: Title and authors, as in CITATION.cff, and the date of the last release.
TITLE = "celltrain: a cell-accurate simulator of TCP and real stacks over packet switches and ATM"
AUTHORS = "The celltrain developers"
RELEASED = "2026-11-23"
#: Forms of the text that says where a paper was published, with the type and the fields of its entry.
_FORMS: tuple[tuple[str, str, dict[str, str]], ...] = (
    (r"ATM Forum contribution (?P<number>\S+), ", "techreport", {"institution": "ATM Forum", "type": "Contribution"}),
    (r"Internet-Draft (?P<number>\S+), ", "techreport", {"institution": "IETF", "type": "Internet-Draft"}),
    (r"(?P<journal>\D+) (?P<volume>\d+)\((?P<number>\d+)\), .*pages (?P<pages>\S+)$", "article", {}),
)


@shell.command
def cite(output: shell.Answer, paper: str | None = None) -> None:
    """Print BibTeX entries of this celltrain, with its commit, and of the papers that it reproduces.

    Argument:
        paper (PAPER): Only the entry of this paper, such as af-96-1269.

    Examples:
        celltrain cite
        celltrain cite af-96-1269
        celltrain cite --json
    """
    if paper is None:
        entries = [_own(), *(_of_paper(describe(one, PAPER)) for one in PAPER.ids())]
    else:
        entries = [_of_paper(load(paper))]
    answer = {"entries": [entry.to_dict() for entry in entries], "build": _core.build()}
    output.tell(answer, *(entry.bibtex for entry in entries))


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A BibTeX entry."""

    key: str
    kind: str
    fields: dict[str, str]

    @property
    def bibtex(self) -> str:
        """The entry as text."""
        return "\n".join([f"@{self.kind}{{{self.key},", *self._lines(), "}"])

    def _lines(self) -> Iterator[str]:
        for name, value in self.fields.items():
            # Two pairs of braces keep the capitals of a title, and mark an institution as a single name.
            text = re.sub(r"([&%#_$])", r"\\\1", value).replace("-", "--" if name == "pages" else "-")
            whole = name == "title" or value == AUTHORS
            yield f"  {name} = {{{{{text}}}}}," if whole else f"  {name} = {{{text}}},"

    def to_dict(self) -> dict[str, Any]:
        """Returns the entry for `--json`."""
        return {"key": self.key, "type": self.kind, "fields": self.fields, "bibtex": self.bibtex}


def _own() -> Entry:
    build = _core.build()
    note = f"Version {build['version']}"
    if build["commit"] is None:
        note = f"Version {build['version']}, built without git, so its commit is unknown"
    fields = {"author": AUTHORS, "title": TITLE, "year": RELEASED[:4], "note": note}
    return Entry(key="celltrain", kind="misc", fields=fields)


def _of_paper(paper: Description) -> Entry:
    fields = {"author": " and ".join(paper.authors), "title": paper.title, "year": str(paper.year)}
    for form, kind, more in _FORMS:
        if match := re.match(form, paper.published_in):
            return Entry(key=paper.id, kind=kind, fields={**fields, **more, **match.groupdict()})
    return Entry(key=paper.id, kind="misc", fields={**fields, "howpublished": paper.published_in})


COMMANDS = {"cite": cite}
