"""The manifest of a folder: which celltrain made it, and from which plan."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from celltrain import _core
from celltrain.errors import Fault, InputError
from celltrain.model.files import UnreadableError, read_json
from celltrain.text import shown

#: The key of a manifest's checksum, which is of everything else it says.
SHA256 = "sha256"
#: The keys of every manifest, and their types.
_EVERY: dict[str, type] = {"version": str, "profile": str, "name": str, "digest": str, "plan": dict}


class Planned(Protocol):
    """A plan, of a sweep or of a search."""

    @property
    def name(self) -> str:
        """In reports and on screens."""

    @property
    def digest(self) -> str:
        """Of everything that decides about rows."""

    @property
    def document(self) -> dict[str, Any]:
        """The plan as it was given."""


@dataclass(frozen=True)
class Kind:
    """A kind of folder: a store, a search."""

    what: str
    file: str
    format: int
    """Of the folder: another one is not read."""
    error: type[InputError]
    unseen: str
    """Where two plans differ when they say the same."""
    needs: Mapping[str, type] = field(default_factory=dict)
    """The keys of its manifest beyond those of every manifest, and their types."""

    def new(self, plan: Planned, **more: Any) -> dict[str, Any]:
        """The manifest of a folder that is made now."""
        build = _core.build()
        made = {"format": self.format, "version": build["version"], "profile": build["profile"]}
        manifest = {**made, "name": plan.name, "digest": plan.digest, **more, "plan": plan.document}
        return {SHA256: checksum(manifest), **manifest}

    def read(self, folder: Path) -> dict[str, Any]:
        """The manifest of a folder; raises the kind's error where there is none that this celltrain reads."""
        path = folder / self.file
        try:
            manifest = read_json(path, what="manifest")
        except UnreadableError as error:
            if error.missing or not folder.is_dir():
                problem = f"is not a {self.what}: it has no {self.file}" if folder.exists() else "is not there"
                raise self.error([Fault.of_file(shown(folder), problem)]) from None
            problem = f"{error.problem}: it is not what celltrain wrote; take it from a backup"
            raise self.error([Fault.of_file(shown(path), problem)]) from None
        return self.understood(folder, manifest)

    def understood(self, folder: Path, manifest: Any) -> dict[str, Any]:
        """Returns a manifest that this celltrain can read; raises the kind's error for others."""
        path = folder / self.file
        if not isinstance(manifest, dict) or manifest.get("format") != self.format:
            found = manifest.get("format") if isinstance(manifest, dict) else None
            problem = f"has format {found!r}, and this celltrain reads {self.format}: use the version that made it"
            raise self.error([Fault.of_file(shown(path), problem)])
        known = {**_EVERY, **self.needs}
        wrong = [key for key, kind in known.items() if not isinstance(manifest.get(key), kind)]
        if wrong:
            problem = f"has no {', '.join(wrong)} as celltrain writes {'it' if len(wrong) == 1 else 'them'}"
            raise self.error([Fault.of_file(shown(path), f"{problem}: it was changed; take it from a backup")])
        return dict(manifest)

    def changed(self, folder: Path, manifest: dict[str, Any]) -> Iterator[Fault]:
        """The fault of a manifest that was changed: nothing is read, verified or repaired by a changed manifest."""
        if manifest.get(SHA256) != checksum(manifest):
            found = "differs" if SHA256 in manifest else "is missing"
            problem = f"was changed (its sha256 {found}): nothing is judged by it, take it from a backup"
            yield Fault.of_file(shown(folder / self.file), problem)

    def differences(self, folder: Path, manifest: dict[str, Any], plan: Planned) -> Iterator[Fault]:
        """The reasons why a folder cannot be resumed."""
        build = _core.build()
        if manifest["version"] != build["version"]:
            yield Fault.of_file(
                shown(folder),
                f"was made by celltrain {manifest['version']}, and this is {build['version']}: results of two versions do "
                f"not mix; install celltrain {manifest['version']} to go on, or name a new folder",
            )
        elif manifest["profile"] != build["profile"]:
            yield Fault.of_file(
                shown(folder),
                f"was made by a {manifest['profile']} build, and this is a {build['profile']} build: do not mix them",
            )
        else:
            yield from self.changed(folder, manifest)
        if manifest["digest"] != plan.digest:
            before, now = manifest["plan"], json.loads(json.dumps(plan.document))
            keys = [key for key in sorted(before.keys() | now.keys()) if before.get(key) != now.get(key)]
            what = f"in {', '.join(keys)}" if set(keys) - {"name", "limits"} else self.unseen
            yield Fault.of_file(
                shown(folder), f"was made from another plan: it differs {what}; name a new folder for this one"
            )


def checksum(manifest: dict[str, Any]) -> str:
    """sha256 of everything a manifest says beside its checksum."""
    said = {key: value for key, value in manifest.items() if key != SHA256}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
