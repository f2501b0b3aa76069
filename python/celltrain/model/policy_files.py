"""Policies in their own files: a TOML file with a table `policy`, a scenario that has one policy, or a Python class."""

from __future__ import annotations

import copy
import importlib.util
import json
import os
import re
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from celltrain.errors import Fault, InputError
from celltrain.model import grammar, python_classes, shipped
from celltrain.model.arguments import checked
from celltrain.model.files import UnreadableError, below
from celltrain.model.shipped import read_text
from celltrain.text import described, key_path, nearest, shown

#: How to write the table in a policy file, for messages.
FORM = 'a table policy, such as policy.formula = { admit = "X <= 0.9 * K" }'
#: Name, in messages, of a policy that does not come from a file.
_NO_FILE = "policy"
#: The page of the manual on Python policies.
PYTHON_PAGE = "docs/python-policies.md"
_CLASS = re.compile(r"(?P<file>.+\.py)(:(?P<cls>[A-Za-z_][\w.]*))?|(?P<module>[A-Za-z_][\w.]*):(?P<name>[A-Za-z_]\w*)")


@dataclass(frozen=True, kw_only=True)
class Policy:
    r"""A policy with a name. Use it wherever a policy is expected: `n_source(policy=...)`, `compare(vary=...)`, `vet`.

    >>> from pathlib import Path
    >>> _ = Path("sah.toml").write_text('name = "SAH"\npolicy.formula = { admit = "X <= 0.9 * K" }')
    >>> Policy.read("sah.toml")
    Policy(name='SAH', table={'formula': {'admit': 'X <= 0.9 * K'}})
    """

    name: str
    """Name of the policy in answers and figures."""
    table: dict[str, Any]
    """Settings of the policy under its key, as in the table `policy` of a port."""
    file: str = field(default=_NO_FILE, repr=False)
    """Name of the policy's file in messages."""
    prefix: str = field(default="policy.", repr=False)
    """Prefix of the policy's keys in its file."""
    lines: Mapping[str, int] = field(default_factory=dict, repr=False)
    """Line number of every key in the policy's file."""
    note: str = field(default="", repr=False)
    """Says which policy of a scenario file this is, if the file has policies of ports and of memories."""

    def __post_init__(self) -> None:
        faults = []
        if not isinstance(self.name, str) or not self.name.strip():
            faults.append(Fault.of_option("name", described(self.name), "is not a name"))
        if not isinstance(self.table, dict) or len(self.table) != 1:
            faults.append(Fault.of_option("table", described(self.table), "is not the table of one policy"))
        if faults:
            raise InputError(faults)

    @classmethod
    @checked()
    def read(cls, path: str | os.PathLike[str]) -> Policy:
        """Reads a policy file: a table `policy` and possibly a `name`, or a scenario with a single policy.

        Args:
            path: The file, the name of a shipped scenario, a policy such as `"epd:threshold=80%"`, or `mine.py:Mine`
                for a Python class whose module the environment variable CELLTRAIN_POLICIES names.

        Raises:
            InputError: If the form of the file is wrong; lists every fault. The valid range of settings depends on the
                buffer, so `celltrain.check` and `celltrain.vet` check it.
        """
        return read(path)

    def refused(self, fault: Fault, path: str) -> Fault:
        """If a scenario has this policy at `path`, turns a fault of the scenario into a fault in the policy's file."""
        if not is_below(fault.key, path):
            return fault
        inner = unquoted(fault.key).split(".")[path.count(".") + 1 :]
        parts = (self.prefix + ".".join(inner)).rstrip(".").split(".")
        known = (self.lines.get(".".join(parts[:end])) for end in range(len(parts), 0, -1))
        line = next((line for line in known if line is not None), None)
        return fault.changed(file=self.file, line=line, key=".".join(parts))

    def _as_model(self) -> dict[str, Any]:
        """Returns the table that stands for the policy in a scenario."""
        return self.table

    def as_setting(self) -> Table:
        """Returns the policy as a setting of a scenario."""
        return Table(self)


class Table(dict[str, Any]):
    """A policy's table as a setting.

    It refers to the policy, so that faults can name the file. Copies do not refer to it.
    """

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy.table)
        self.policy = policy

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return copy.deepcopy(dict(self), memo)


def unquoted(key: str) -> str:
    """Returns a key of a fault as in paths, where patterns of names have no quotes.

    >>> unquoted('switch."*".memory.cells')
    'switch.*.memory.cells'
    """
    return re.sub(r'"([^".]*\*[^".]*)"', r"\1", key)


def is_below(key: str, path: str) -> bool:
    """Returns whether the key of a fault is this path into a scenario, or below it.

    >>> is_below("switch.sw.memory.cells", "switch.*.memory"), is_below("switch.sw", "switch.*.memory")
    (True, False)
    """
    own, steps = unquoted(key).split("."), path.split(".")
    return len(own) >= len(steps) and all(
        one == step or fnmatchcase(one, step) for one, step in zip(own, steps, strict=False)
    )


def refused(fault: Fault, path: str, setting: object) -> Fault | None:
    """Turns a fault at or below `path` into a fault in the policy file of the setting; None if it has no file."""
    if not isinstance(setting, Table) or not is_below(fault.key, path) or setting.policy.file == _NO_FILE:
        return None
    return setting.policy.refused(fault, path)


def is_file(text: str) -> bool:
    """Returns whether a text names a policy file or a Python class rather than a policy.

    >>> [is_file(text) for text in ("@mine.toml", "mine.toml", "mine.py:Mine", "epd:threshold=80%", "mine:Mine")]
    [True, True, True, False, True]
    """
    return text.startswith("@") or text.endswith(".toml") or _class(text) is not None


def _class(text: str) -> re.Match[str] | None:
    """Matches a text that names a Python class. `epd:threshold` does not name a class, because `epd` is a policy."""
    return None if text.partition(":")[0] in shipped.policies() else _CLASS.fullmatch(text)


def read(
    given: str | os.PathLike[str],
    folder: Path | None = None,
    change: Callable[[dict[str, Any]], dict[str, Any]] = lambda root: root,
    *,
    of_memories: bool | None = None,
) -> Policy:
    """Reads a policy file; raises `InputError`.

    Args:
        given: The file, with or without a leading `@`, or anything else that `Policy.read` takes.
        folder: Folder of the plan that names the file, which must contain it; None if the user named it.
        change: Applied to the tables of the file before they are checked.
        of_memories: True for a policy of memories, False for one of ports, if the file is a scenario that has both; None
            for the policy of its ports, unless that is tail drop.
    """
    text = os.fsdecode(given).removeprefix("@")
    if (match := _class(text)) and not (Path(text).is_file() and not text.endswith(".py")):
        return _with(_of_class(text, match, folder), change)
    path = _path(text, folder)
    file, content = shipped.found(text, "scenario", folder or Path()) or (shown(path), None)
    if content is None:
        if not path.exists():
            if near := shipped.with_ending(Path(text), folder):
                raise InputError.of_file(text, f"there is no such file; did you mean {shown(near)}?")
            if not is_file(os.fsdecode(given)) and path.name == text and ("=" in text or not path.suffix):
                return _with(Policy(name=text, table=_of_words(text)), change)
        content = read_text(path, what="policy")
    root, lines = shipped.toml(content, file)
    root = change(root)
    name = _name(root, lines, file)
    if "topology" in root:
        return _of_scenario(root, file, lines, name, of_memories)
    tables = {key: value for key, value in root.items() if key != "name"}
    if "policy" not in root:
        if len(tables) == 1 and isinstance(next(iter(tables.values())), dict):
            return Policy(name=name, table=tables, file=file, prefix="", lines=lines)
        raise InputError.of_file(file, f"has no policy; it must have {FORM}, or be a scenario with one policy")
    policy = tables.pop("policy")
    if tables:
        problem = f"is unknown; a policy's file has {FORM}, and optionally a name"
        raise InputError(Fault.of(problem, file=file, line=lines.get(key), key=key) for key in tables)
    at: dict[str, Any] = {"file": file, "line": lines.get("policy"), "key": "policy"}
    if isinstance(policy, str):
        # The form of the command line: policy = "epd:threshold=80%".
        try:
            policy = grammar.choice(policy, shipped.policies(), "policy")
        except ValueError as error:
            raise InputError.of(str(error), **at) from None
    if not isinstance(policy, dict):
        raise InputError.of(f"is not {FORM}", **at, value=described(policy))
    if len(policy) != 1:
        several = f"has {len(policy)} policies ({', '.join(policy)}); keep one, in a file of its own"
        raise InputError.of(several if policy else f"is not {FORM}", **at)
    return Policy(name=name, table=policy, file=file, lines=lines)


def _with(policy: Policy, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Policy:
    """Returns a policy without a file, with its table changed like the table of a policy file."""
    return replace(policy, table=change({"policy": policy.table})["policy"])


def _path(name: str, folder: Path | None) -> Path:
    """Returns the path of a file; raises `InputError` if a plan in `folder` names a file outside."""
    try:
        return Path(name) if folder is None else below(folder, name)
    except UnreadableError as error:
        raise InputError.of_file(shown(name), error.problem) from None


def _of_words(text: str) -> dict[str, Any]:
    """Parses a policy such as `epd:threshold=80%`. If it cannot, the `InputError` also says that there is no such file."""
    of_memories = shipped.policies("MemoryPolicy")
    known = of_memories if text.partition(":")[0] in {*of_memories} - {"formula"} else shipped.policies()
    try:
        return grammar.choice(text, known, "policy")
    except ValueError as error:
        problem = str(error).replace(f"has {text!r}, which ", "there is no such file, and the text ")
        near = nearest(text, shipped.names("scenario"), cutoff=0.75)
        if near and "id you mean" not in problem:
            problem = problem.replace("not a policy.", f"not a policy. Did you mean {near}?", 1)
        raise InputError.of_file(text, problem) from None


def of_table(policy: Mapping[str, Any]) -> Policy:
    """Makes a policy from a table, with or without `policy` around it; raises `InputError`."""
    table = dict(policy)
    if set(table) == {"policy"} and isinstance(table["policy"], Mapping):
        table = dict(table["policy"])
    if len(table) != 1:
        raise InputError.of_option("policy", described(policy), f"is not a policy; it must be {FORM}")
    return Policy(name=str(next(iter(table))), table=table)


def is_policy_file(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path is a policy file or a Python class rather than a scenario."""
    text = os.fsdecode(path)
    if text.startswith("@") or _class(text):
        return True
    try:
        return has_policy(shipped.toml(read_text(Path(text)), text)[0])
    except InputError:
        return False


def has_policy(root: Mapping[str, Any]) -> bool:
    """Returns whether the given tables are the tables of a policy file."""
    if "topology" in root or "duration" in root:
        return False
    names = {*shipped.policies(), *shipped.policies("MemoryPolicy")}
    return "policy" in root or any(key in names for key in root)


def _name(root: Mapping[str, Any], lines: Mapping[str, int], file: str) -> str:
    name = root.get("name", Path(file).stem)
    if name == "" and "topology" in root:
        return Path(file).stem
    if isinstance(name, str) and name.strip():
        return name
    problem = "is not a name; write a text, or leave it out to use the file's name"
    value = json.dumps(name, ensure_ascii=False)
    raise InputError.of(problem, file=file, line=lines.get("name"), key="name", value=value)


def _of_scenario(
    root: Mapping[str, Any], file: str, lines: Mapping[str, int], name: str, of_memories: bool | None
) -> Policy:
    """Returns the only policy of a scenario's ports or memories; `read` explains which of them."""
    of_ports, of_pools = _distinct(_of_ports(root)), _distinct(_of_pools(root))
    if of_memories is None:
        of_memories = bool(of_pools) and set(of_ports) <= {'{"tail_drop": {}}'}
    wanted, others = (of_pools, of_ports) if of_memories else (of_ports, of_pools)
    if not wanted:
        wanted, others, of_memories = others, wanted, not of_memories
    if len(wanted) != 1:
        key = "switch" if of_memories else "port"
        problem = f"has {len(wanted)} policies; only one can be tested: write it into its own file as {FORM}"
        raise InputError.of(problem, file=file, line=lines.get(key), key=key)
    [(policy, prefix)] = wanted.items()
    table = json.loads(policy)
    note = ""
    if others:
        own, other = ("memories", "ports") if of_memories else ("ports", "memories")
        names = ", ".join(dict.fromkeys(next(iter(json.loads(one))) for one in others))
        note = f"{next(iter(table))} is the policy of the {own} in {file}, not that of its {other} ({names})"
    return Policy(name=name, table=table, file=file, prefix=f"{prefix}.", lines=lines, note=note)


def _distinct(policies: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """Returns the different policies, as JSON, each with the first place of its table."""
    found: dict[str, str] = {}
    for place, policy in policies:
        if isinstance(policy, Mapping) and policy:
            found.setdefault(json.dumps(policy, sort_keys=True), place)
    return found


def _of_ports(root: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, port in tables_in(root.get("port")):
        yield f"{key_path('port', key)}.policy", port.get("policy")


def _of_pools(root: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yields the policies of pools on the egress side, with their places."""
    for switch, own in tables_in(root.get("switch")):
        places = {key_path("memories", name): one for name, one in tables_in(own.get("memories"))}
        for place, memory in tables_in({"memory": own.get("memory"), **places}):
            for pool, settings in tables_in(memory.get("pool")):
                if settings.get("side") != "ingress":
                    pools = f"{key_path('switch', switch)}.{place}.pool"
                    yield f"{key_path(pools, pool)}.policy", settings.get("policy")


def tables_in(table: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields the members of a table that are tables themselves."""
    for key, one in table.items() if isinstance(table, Mapping) else ():
        if isinstance(one, Mapping):
            yield key, one


def stack_of_class(text: str, folder: Path | None, stacks: Container[str]) -> tuple[str, dict[str, Any]] | None:
    """Returns the name and the table of a stack that is a Python class, such as `mine.py:Mine:window=4`.

    Raises `InputError`. Returns None if the text names one of the built-in `stacks` instead of a class.
    """
    parts = grammar.split(text, ":")
    given = dict(part.split("=", 1) for part in parts if "=" in part)
    written = ":".join(part for part in parts if "=" not in part)
    match = None if parts[0] in stacks else _CLASS.fullmatch(written)
    if match is None:
        return None
    name, table = _class_table("stack", written, match, folder)
    settings = {key.strip(): grammar.value(value.strip()) for key, value in given.items()}
    own = {**({"settings": settings} if settings else {}), **python_classes.mss_of(table["python"]["class"], settings)}
    return ":".join([name, *(f"{key}={value}" for key, value in given.items())]), {"python": {**table["python"], **own}}


def _of_class(text: str, match: re.Match[str], folder: Path | None) -> Policy:
    """Makes a policy from a Python class, whose module CELLTRAIN_POLICIES must name; raises `InputError`."""
    name, table = _class_table("policy", text, match, folder)
    return Policy(name=name, table=table, file=shown(text), prefix="policy.")


def is_of_memories(called: str) -> bool:
    """Returns whether a Python class, given by module and name, is a policy of memories."""
    try:
        python_classes.class_of(called, python_classes.PythonMemoryPolicy)
    except LookupError:
        return False
    return True


def _class_table(kind: str, text: str, match: re.Match[str], folder: Path | None) -> tuple[str, dict[str, Any]]:
    """Returns the name of a Python class, a "policy" or a "stack", and its table in a scenario."""
    file, cls = match["file"], match["cls"] or match["name"]
    module = match["module"] if file is None else Path(file).stem
    variable = python_classes.VARIABLE
    if file is not None and module not in sys.modules:
        _existing(file, folder)
    loaded = module in sys.modules or module in python_classes.named_modules()
    if not loaded or cls is None:
        problem = (
            f"is a Python class, and celltrain loads code only if {variable} names its module: set {variable}={module} and "
            f"write {text if cls else f'{text}:CLASS'} ({PYTHON_PAGE})"
        )
        if loaded:
            problem = f"does not name a class; write {text}:CLASS ({PYTHON_PAGE})"
        raise InputError.of_file(text, problem)
    if file is not None:
        _load(file, module, folder, text)
    called = f"{module}:{cls}"
    kind = kind if kind == "stack" else "memory" if is_of_memories(called) else "port"
    wrong = [problem for key, _, problem in python_classes.faults(kind, called, {}) if key == "class"]
    if wrong:
        raise InputError.of_file(text, f"{wrong[0]} ({PYTHON_PAGE})")
    return cls.rpartition(".")[2], {"python": {"class": called}}


def _existing(file: str, folder: Path | None) -> Path:
    """Returns the path of a file; raises `InputError` if it is not a file, or outside of the plan's folder."""
    path = _path(file, folder)
    if not path.is_file():
        raise InputError.of_file(shown(file), "there is no such file")
    return path


def _load(file: str, module: str, folder: Path | None, text: str) -> None:
    """Imports a policy module from a file; raises `InputError`."""
    if module in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(module, _existing(file, folder))
    assert spec is not None and spec.loader is not None, "the file name ends in .py"
    made = importlib.util.module_from_spec(spec)
    sys.modules[module] = made
    try:
        spec.loader.exec_module(made)
    except Exception as error:
        del sys.modules[module]
        raise InputError.of_file(text, f"cannot be loaded: {type(error).__name__}: {error} ({PYTHON_PAGE})") from None
