"""Files of SONiC: `config_db.json`, rendered `buffers_defaults_*.j2`, `pg_profile_lookup.ini` and `port_config.ini`.

The formats are defined in sonic-net/SONiC (doc/qos) and sonic-net/sonic-buildimage. Numbers in the files are texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from celltrain.errors import Fault, InputError, warn
from celltrain.mmu.generations import Place, Source, metres_of, of_switch, refuse
from celltrain.model import files
from celltrain.model.shipped import read_text
from celltrain.text import among, nearest, shown

CONFIG, LOOKUP, PORTS = "config_db.json", "pg_profile_lookup.ini", "port_config.ini"
#: Largest priority of a priority group, and largest number of a queue.
MOST_GROUP, MOST_QUEUE = 7, 19
#: Maximum number of ports of a switch.
MOST_PORTS = 4096
#: Keys in entries of the tables that celltrain reads.
KEYS = {
    "BUFFER_POOL": {"size", "type", "mode", "xoff"},
    "BUFFER_PROFILE": {"pool", "size", "xon", "xoff", "xon_offset", "dynamic_th", "static_th"},
    "BUFFER_PG": {"profile"},
    "BUFFER_QUEUE": {"profile"},
}
#: Keys of `WRED_PROFILE` for green packets, the normal colour, by the names that a configuration uses.
WRED_KEYS = {
    "minimum": "green_min_threshold",
    "maximum": "green_max_threshold",
    "probability": "green_drop_probability",
}
#: Values of `ecn` in `WRED_PROFILE` with which green packets are marked.
MARKS_GREEN = ("ecn_all", "ecn_green", "ecn_green_yellow", "ecn_green_red")
#: Keys that do not affect thresholds, and tables about buffers that are ignored.
OTHER_KEYS = {"headroom_type", "packet_discard_action", "NULL"}
OTHER_TABLES = ("BUFFER_PORT_INGRESS_PROFILE_LIST", "BUFFER_PORT_EGRESS_PROFILE_LIST")
#: Priorities that pause their sender by default.
LOSSLESS = (3, 4)
#: Default profiles of priority groups and queues, as in SONiC's own template.
LOSSY_GROUPS = {"0": "ingress_lossy_profile"}
QUEUES = {"0-2": "egress_lossy_profile", "3-4": "egress_lossless_profile", "5-6": "egress_lossy_profile"}
#: The pool of the lossless groups that SONiC creates from `pg_profile_lookup.ini`.
LOSSLESS_POOL = "ingress_lossless_pool"
#: Length that SONiC writes for a port without a cable.
NO_CABLE = "0m"
#: Similarity of names above which one is probably a misspelling of the other: `ingress_x` and `egress_x` are below it.
SLIP = 0.95


class Tables:
    """The tables in all files of a folder, and the places of their values."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tables: dict[str, dict[str, Any]] = {}
        self.places: dict[str, Place] = {}
        self.faults: list[Fault] = []
        self.lookup: dict[str, dict[str, Any]] = {}
        #: Ports for whose speed and cable there is no row of headroom, by speed and cable.
        self.lacking: dict[str, list[str]] = {}
        self.warnings: list[str] = []
        self._files: dict[tuple[str, str], tuple[str, str]] = {}

    def read(self) -> None:
        """Reads every file that is known by its name; `config_db.json` takes precedence over the others."""
        if not self.folder.is_dir():
            raise InputError.of_file(str(self.folder), "is not a folder; name one with files of SONiC")
        found = sorted(self.folder.iterdir(), key=lambda path: (path.name == CONFIG, path.name))
        buffers = [path for path in found if path.name == CONFIG or re.fullmatch(r"buffers.*\.(json|j2)", path.name)]
        for path in buffers:
            self._add(path)
        defaults = [path.name for path in buffers if path.name.startswith("buffers_defaults")]
        if len(defaults) > 1:
            problem = f"has {' and '.join(defaults)}; keep only the file for the topology of the switch"
            self.faults.append(Fault.of_file(str(self.folder), problem))
        if not buffers:
            problem = f"has no {CONFIG} and no rendered buffers_defaults_*.j2: name the folder with one of them"
            self.faults.append(Fault.of_file(str(self.folder), problem))
        if (ports := self.folder / PORTS).exists():
            self._add_ports(ports)
        if (lookup := self.folder / LOOKUP).exists():
            self._add_lookup(lookup)

    def place(self, table: str, *keys: str) -> Place:
        """Returns the place of a value, by the keys that lead to it."""
        key = ".".join((table, *keys))
        file, text = self._files.get((table, keys[0] if keys else ""), (str(self.folder), ""))
        position = 0
        for step in (table, *keys):
            match = re.compile(re.escape(json.dumps(step)) + r"\s*:").search(text, position)
            if match is None:
                break
            position = match.end()
        return Place(file, text.count("\n", 0, position) + 1 if position else None, key)

    def fault(self, problem: str, value: object, table: str, *keys: str) -> None:
        """Adds a fault in a value."""
        place = self.place(table, *keys)
        text = value if isinstance(value, str) else json.dumps(value)
        self.faults.append(Fault.of(problem, file=place.file, line=place.line, key=place.key, value=text))

    def _add(self, path: Path) -> None:
        text, file = read_text(path, what="configuration"), str(path)
        template = re.search(r"\{\{|\{%|\{#", text)
        if template is not None:
            line = text.count("\n", 0, template.start()) + 1
            problem = (
                "is a template that has not been rendered; render it with the switch's sonic-cfggen -d -t, or name the"
                " folder with its config_db.json"
            )
            self.faults.append(Fault.of(problem, file=file, line=line, value=template[0], key="template"))
            return
        inner = text.strip()
        if path.suffix == ".j2" and not inner.startswith("{"):
            # Reads the columns of `port_config.ini`, for ports that occur in no other table.
            text = "{" + text.rstrip().rstrip(",") + "}"
        try:
            root = files.json_of(re.sub(r",(\s*[}\]])", r"\1", text) if path.suffix == ".j2" else text)
        except files.UnreadableError as error:
            self.faults.append(Fault.of_file(file, error.problem))
            return
        if not isinstance(root, dict):
            self.faults.append(Fault.of_file(file, "is not an object of tables such as BUFFER_POOL"))
            return
        for table, entries in root.items():
            self._files[table, ""] = (file, text)
            if table.startswith("BUFFER") and table not in (*KEYS, *OTHER_TABLES):
                self.fault(f"is not a table of SONiC; {among(table, KEYS)}", "{...}", table)
            if not isinstance(entries, dict):
                continue
            known = self.tables.setdefault(table, {})
            for name, entry in entries.items():
                self._files[table, name] = (file, text)
                known[name] = entry

    def _add_ports(self, path: Path) -> None:
        """Reads the columns of `port_config.ini`, for ports that occur in no other table."""
        if self.tables.get("PORT"):
            return
        heads = ["name", "lanes", "alias", "index", "speed"]
        for line in read_text(path, what="configuration").splitlines():
            words = line.lstrip("#").split()
            if line.lstrip().startswith("#"):
                heads = words if "name" in words else heads
            elif words:
                self.tables.setdefault("PORT", {})[words[0]] = dict(zip(heads, words, strict=False))
                self._files["PORT", words[0]] = (str(path), "")

    def _add_lookup(self, path: Path) -> None:
        heads = ["speed", "cable", "size", "xon", "xoff", "threshold", "xon_offset"]
        for number, line in enumerate(read_text(path, what="configuration").splitlines(), 1):
            words = line.lstrip("#").split()
            if line.lstrip().startswith("#"):
                heads = words if {"speed", "cable"} <= set(words) else heads
                continue
            if not words:
                continue
            row = dict(zip(heads, words, strict=False))
            name = f"{row.pop('speed', '')}_{row.pop('cable', '')}"
            place = f"headroom.{name}"
            self.places[place] = Place(str(path), number, name)
            self.lookup[name] = {}
            for key, value in row.items():
                ours = "dynamic_th" if key == "threshold" else key
                self.places[f"{place}.{ours}"] = Place(str(path), number, f"{name}.{key}")
                if re.fullmatch(r"-?\d{1,15}", value):
                    self.lookup[name][ours] = int(value)
                else:
                    key = f"{name}.{key}"
                    fault = Fault.of("is not a whole number", file=str(path), line=number, key=key, value=value)
                    self.faults.append(fault)


def read_folder(folder: Path, cable: str | None = None, *, needs_chip: bool = False) -> tuple[dict[str, Any], Source]:
    """Reads the files of a folder as the tables of a configuration; raises `InputError`.

    Args:
        folder: The folder.
        cable: Length of the cables of ports without one in the table CABLE_LENGTH.
        needs_chip: True if a folder that does not name its chip is refused, together with its other faults.
    """
    if cable is not None and metres_of(cable) is None:
        unit = f"; write {cable}m" if cable.strip().isdecimal() else ""
        raise InputError.of_option("--cable", cable, f"is not a length such as 5m or 2km{unit}")
    read = Tables(folder)
    read.read()
    table: dict[str, Any] = {
        "name": _name(read),
        "pool": {},
        "profile": {},
        "port": [],
        "headroom": read.lookup,
        "wred": {},
    }
    # Folders of device types have the name of the hardware, perhaps with a folder of profiles inside.
    chips = (of_switch(name) for name in (table["name"], *reversed(folder.resolve().parts)))
    if (chip := next(filter(None, chips), None)) is not None:
        table["generation"] = chip.short
    for kind in ("pool", "profile"):
        of_sonic = f"BUFFER_{kind.upper()}"
        for name, entry in read.tables.get(of_sonic, {}).items():
            table[kind][name] = _entry(read, of_sonic, name, entry)
            read.places[f"{kind}.{name}"] = read.place(of_sonic, name)
            for key in table[kind][name]:
                read.places[f"{kind}.{name}.{key}"] = read.place(of_sonic, name, key)
    if not table["pool"] and not read.faults:
        problem = "has no table BUFFER_POOL: name a folder with the buffer configuration of a switch"
        read.faults.append(Fault.of_file(str(folder), problem))
    _add_wred(read, table)
    _add_ports(read, table, cable)
    if not table["port"] and not read.faults:
        problem = f"has no ports: add {PORTS}, or {CONFIG} with the table PORT"
        read.faults.append(Fault.of_file(str(folder), problem))
    if needs_chip and "generation" not in table:
        read.faults.append(no_chip(str(folder)))
    refuse(read.faults)
    warn([*read.warnings, *_without_headroom(read)])
    return table, Source(file=str(folder), places=read.places)


def no_chip(file: str) -> Fault:
    """Returns the fault of a configuration that does not name its chip."""
    return Fault.of_file(file, "lacks the switch's chip generation; add --generation NAME, or a line generation")


def numbers(text: str, most: int) -> range | None:
    """Returns the priorities or queues of a key such as `3` or `3-4`; None for other keys.

    >>> numbers("3-4", 7), numbers("4-3", 7)
    (range(3, 5), None)
    """
    match = re.fullmatch(r"(\d{1,3})(?:-(\d{1,3}))?", text)
    if match is None:
        return None
    first, last = int(match[1]), int(match[2] or match[1])
    return range(first, last + 1) if first <= last <= most else None


def _name(read: Tables) -> str:
    """Returns the hardware of the switch from its metadata. Without metadata, returns the name of the folder."""
    metadata = read.tables.get("DEVICE_METADATA", {}).get("localhost", {})
    known = metadata.get("hwsku") if isinstance(metadata, dict) else None
    return known if isinstance(known, str) and known else read.folder.resolve().name


def _entry(read: Tables, table: str, name: str, entry: Any) -> dict[str, Any]:
    """Returns an entry of a table in which numbers written as text are numbers."""
    if not isinstance(entry, dict):
        read.fault("is not an object", entry, table, name)
        return {}
    made: dict[str, Any] = {}
    for key, value in entry.items():
        if key in OTHER_KEYS:
            continue
        if key == "percentage":
            problem = "is the form of dynamic buffers, without sizes; take the size of the pool from a running switch"
            read.fault(problem, value, table, name, key)
        elif key not in KEYS[table]:
            read.fault(f"is not a key of {table}; {among(key, sorted(KEYS[table]))}", value, table, name, key)
        elif key in ("type", "mode", "pool"):
            made[key] = _reference(value) if isinstance(value, str) else value
        elif re.fullmatch(r"-?\d{1,15}", str(value)):
            made[key] = int(value)
        else:
            unit = "" if key == "dynamic_th" else " of bytes"
            read.fault(f"is not a whole number{unit}", value, table, name, key)
    return made


def _reference(text: str) -> str:
    """Returns the name in a reference such as `[BUFFER_POOL|egress_lossy_pool]`, the form of older versions."""
    return text.strip("[]").rpartition("|")[2].rpartition(":")[2]


def _add_ports(read: Tables, table: dict[str, Any], cable: str | None) -> None:
    """Adds the ports, and combines ports with the same settings into groups."""
    ports = read.tables.get("PORT", {})
    settings = {name: _port(read, name, entry, cable) for name, entry in ports.items()}
    without = [name for name, one in settings.items() if "cable" not in one]
    if without and read.lookup and LOSSLESS_POOL in table["pool"]:
        problem = (
            f"is not in the table CABLE_LENGTH, so {LOOKUP} has no headroom for it; add --cable LENGTH, such as 5m"
        )
        read.fault(problem, without[0], "PORT", without[0])
    origin: dict[tuple[str, str, str], tuple[str, str]] = {}
    for kind, of_sonic in (("groups", "BUFFER_PG"), ("queues", "BUFFER_QUEUE")):
        for key, entry in read.tables.get(of_sonic, {}).items():
            # A chassis has keys such as `host|asic0|Ethernet0|3-4`.
            names, _, priorities = key.rpartition("|")
            names = names.rpartition("|")[2]
            if not names:
                read.fault("names no port; write a key such as Ethernet0|3-4", key, of_sonic, key)
            made = _entry(read, of_sonic, key, {}) if not isinstance(entry, dict) else entry
            for other in made.keys() - KEYS[of_sonic] - OTHER_KEYS:
                read.fault(f"is not a key of {of_sonic}; choose profile", made[other], of_sonic, key, other)
            profile = made.get("profile")
            if not isinstance(profile, str) or profile == "NULL":
                continue
            for name in names.split(","):
                if ports and name not in ports:
                    read.fault("is not a port; the table PORT does not have it", name, of_sonic, key)
                    break
                one = settings.setdefault(name, {"groups": {}, "queues": {}})
                one[kind][priorities] = _reference(profile)
                origin[name, kind, priorities] = (of_sonic, key)
    for name, queues, profile, key in _marked_queues(read):
        if name in settings and profile in table["wred"]:
            settings[name].setdefault("wred", {})[queues] = profile
            origin[name, "wred", queues] = ("QUEUE", key)
    if len(settings) > MOST_PORTS:
        read.faults.append(Fault.of_file(str(read.folder), f"has more than {MOST_PORTS} ports, which no switch has"))
        return
    for kind, of_sonic, defaults in (("groups", "BUFFER_PG", LOSSY_GROUPS), ("queues", "BUFFER_QUEUE", QUEUES)):
        if of_sonic in read.tables or not ports:
            continue
        for name in ports:
            settings[name][kind] = {key: profile for key, profile in defaults.items() if profile in table["profile"]}
        _check_defaults(read, table, settings, (kind, of_sonic), defaults)
    for name, one in settings.items():
        _add_lossless(read, table, name, one, is_port=name in ports)
    classes: dict[str, list[str]] = {}
    for name, one in settings.items():
        classes.setdefault(json.dumps(one, sort_keys=True), []).append(name)
    for index, (same, members) in enumerate(classes.items()):
        table["port"].append({"names": list(_series(members)), **json.loads(same)})
        for (name, kind, priorities), keys in origin.items():
            if name == members[0]:
                read.places[f"port.{index}.{kind}.{priorities}"] = read.place(*keys)
        read.places[f"port.{index}"] = read.place("PORT", members[0])


def _check_defaults(
    read: Tables,
    table: dict[str, Any],
    settings: Mapping[str, Any],
    tables: tuple[str, str],
    defaults: Mapping[str, str],
) -> None:
    """Reports default profiles that the files do not define: a fault if one is misspelt, otherwise a warning."""
    kind, of_sonic = tables
    named = {profile for one in settings.values() for of in ("groups", "queues") for profile in one[of].values()}
    unused = [name for name in table["profile"] if name not in {*named, *LOSSY_GROUPS.values(), *QUEUES.values()}]
    for profile in sorted({*defaults.values()} - table["profile"].keys()):
        listed = " and ".join(key for key, name in defaults.items() if name == profile)
        users = f"{kind if '-' in listed else kind.removesuffix('s')} {listed}"
        if slip := nearest(profile, unused, SLIP):
            place = read.place("BUFFER_PROFILE", slip)
            problem = f"is a profile that no group or queue uses; did you mean {profile}, of {users}?"
            read.faults.append(Fault.of(problem, file=place.file, line=place.line, key=place.key))
            continue
        place = read.place("BUFFER_PROFILE")
        others = f"; nothing uses {', '.join(unused)}" if unused else ""
        problem = f"has no {profile}, so {users} cannot drop; add it, or {of_sonic}{others}"
        read.warnings.append(Fault.of(problem, file=place.file, line=place.line, key=place.key).message)


def _add_wred(read: Tables, table: dict[str, Any]) -> None:
    """Adds the profiles of WRED that mark or drop green packets."""
    for name, entry in read.tables.get("WRED_PROFILE", {}).items():
        if not isinstance(entry, dict):
            read.fault("is not an object", entry, "WRED_PROFILE", name)
            continue
        marks = entry.get("ecn") in MARKS_GREEN
        if not marks and str(entry.get("wred_green_enable")).lower() != "true":
            continue
        made: dict[str, Any] = {"ecn": marks}
        for ours, key in WRED_KEYS.items():
            if re.fullmatch(r"\d{1,15}", str(entry.get(key))):
                made[ours] = int(entry[key])
                read.places[f"wred.{name}.{ours}"] = read.place("WRED_PROFILE", name, key)
            elif key in entry:
                read.fault("is not a whole number", entry[key], "WRED_PROFILE", name, key)
        table["wred"][name] = made
        read.places[f"wred.{name}"] = read.place("WRED_PROFILE", name)


def _marked_queues(read: Tables) -> Iterator[tuple[str, str, str, str]]:
    """Yields the port, the queues, the profile and the key of each queue with a profile of WRED."""
    for key, entry in read.tables.get("QUEUE", {}).items():
        profile = entry.get("wred_profile") if isinstance(entry, dict) else None
        if not isinstance(profile, str):
            continue
        names, _, queues = key.rpartition("|")
        if _reference(profile) not in read.tables.get("WRED_PROFILE", {}):
            read.fault("is not an entry of WRED_PROFILE", profile, "QUEUE", key, "wred_profile")
        for name in names.rpartition("|")[2].split(","):
            yield name, queues, _reference(profile), key


def _port(read: Tables, name: str, entry: Any, cable: str | None) -> dict[str, Any]:
    """Returns a port's speed, cable and pausing priorities."""
    one: dict[str, Any] = {} if cable is None else {"cable": cable}
    speed = entry.get("speed") if isinstance(entry, dict) else None
    if speed is not None and re.fullmatch(r"\d{1,9}", str(speed)):
        one["speed"] = int(speed)
    elif speed is not None:
        read.fault("is not a whole number of Mb/s", speed, "PORT", name, "speed")
    for lengths in read.tables.get("CABLE_LENGTH", {}).values():
        if isinstance(lengths, dict) and isinstance(lengths.get(name), str):
            one["cable"] = lengths[name]
    maps = read.tables.get("PORT_QOS_MAP", {})
    enabled = maps.get(name, {}).get("pfc_enable") if isinstance(maps.get(name, {}), dict) else None
    if isinstance(enabled, str):
        pause = [int(number) for number in enabled.split(",") if number.strip().isdecimal()]
        if any(number > MOST_GROUP for number in pause):
            read.fault(f"has a priority above {MOST_GROUP}", enabled, "PORT_QOS_MAP", name, "pfc_enable")
        one["pause"] = pause
    elif any(isinstance(row, dict) and "pfc_enable" in row for row in maps.values()):
        one["pause"] = []
    return {**one, "groups": {}, "queues": {}}


def _add_lossless(read: Tables, table: dict[str, Any], port: str, one: dict[str, Any], *, is_port: bool) -> None:
    """Adds the lossless groups that SONiC derives from speed and cable, if a port has none."""
    pause = one.get("pause", list(LOSSLESS) if is_port else [])
    taken = {number for key in one["groups"] for number in numbers(key, MOST_GROUP) or ()}
    found = f"{one.get('speed')}_{one.get('cable')}"
    if not pause or set(pause) & taken or LOSSLESS_POOL not in table["pool"]:
        return
    if found not in read.lookup:
        # With a cable of 0 m, a port has no lossless groups.
        if one.get("cable") != NO_CABLE and (not read.lookup or "cable" in one):
            row = found if "speed" in one else f"a port without speed, {one.get('cable')}"
            read.lacking.setdefault(row if read.lookup else "", []).append(port)
        return
    name = f"pg_lossless_{found}_profile"
    if name not in table["profile"]:
        table["profile"][name] = {"pool": LOSSLESS_POOL, **read.lookup[found]}
        for key in ("", *(f".{key}" for key in read.lookup[found])):
            read.places[f"profile.{name}{key}"] = read.places[f"headroom.{found}{key}"]
    one["groups"].update(dict.fromkeys(_ranges(pause), name))
    one["pause"] = pause


def _without_headroom(read: Tables) -> Iterator[str]:
    """Yields a warning for each speed and cable length that needs lossless groups but has no row of headroom."""
    for found, names in read.lacking.items():
        who = f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]
        if not read.lookup:
            lacks = (
                f"{shown(read.folder / LOOKUP)} {'has no rows' if (read.folder / LOOKUP).exists() else 'is missing'}"
            )
            yield f"{lacks}: no lossless groups for {who}, whose reserves would lower other thresholds; add the file"
            continue
        speed = found.rpartition("_")[0]
        cables = [row.rpartition("_")[2] for row in read.lookup if row.rpartition("_")[0] == speed]
        known = f" (its cables at {speed} Mb/s: {', '.join(cables)})" if cables else ""
        yield f"{LOOKUP} has no row for {found}{known}: no lossless groups for {who}; add one if they need them"


def _ranges(priorities: list[int]) -> Iterator[str]:
    """Yields consecutive priorities as ranges.

    >>> list(_ranges([2, 3, 4, 6]))
    ['2-4', '6']
    """
    left = sorted(set(priorities))
    while left:
        length = next((n for n in range(1, len(left)) if left[n] != left[0] + n), len(left))
        yield str(left[0]) if length == 1 else f"{left[0]}-{left[0] + length - 1}"
        left = left[length:]


def _series(names: list[str]) -> Iterator[str]:
    """Yields names. Series of at least three names become one text.

    >>> list(_series(["Ethernet0", "Ethernet8", "Ethernet16", "Ethernet512"]))
    ['Ethernet0 to Ethernet16 by 8', 'Ethernet512']
    """
    numbered = [re.fullmatch(r"(\D*)(0|[1-9]\d{0,5})", name) for name in names]
    if None in numbered:
        yield from names
        return
    left = sorted((match[1], int(match[2])) for match in numbered if match is not None)
    while left:
        stem, first = left[0]
        step = left[1][1] - first if len(left) > 1 else 0
        length = 1
        while step > 0 and length < len(left) and left[length] == (stem, first + length * step):
            length += 1
        length = length if length >= 3 else 1
        yield f"{stem}{first} to {stem}{left[length - 1][1]} by {step}" if length > 1 else f"{stem}{first}"
        left = left[length:]
