"""Runs a scenario in real time between Linux network namespaces, in which any program can be started.

The kernel cleans up. Each host is a process. When it dies, all programs in the host end. It ends as soon as its input
is closed, so nothing is left if this process is killed.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from celltrain import _core
from celltrain.errors import Fault, InputError, warn
from celltrain.model.arguments import current
from celltrain.model.scenario import read
from celltrain.running.results import RunResult
from celltrain.text import shown

if TYPE_CHECKING:
    from celltrain.model.types import Scenario

#: Capabilities that an emulation needs, with their bits (linux/capability.h).
CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}
#: Programs that an emulation needs, with their Debian packages.
TOOLS = {"unshare": "util-linux", "nsenter": "util-linux", "mount": "mount", "ip": "iproute2", "tc": "iproute2"}
TUN = "/dev/net/tun"
#: Flags of a device without Ethernet or other additional headers (linux/if_tun.h).
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
#: Name of the TUN device in every host.
DEVICE = b"atm0"
#: Time between the starts of two programs, so that a server can listen before its client connects.
GAP_SECONDS = 0.1
#: Time that a program may take to end after the emulation, in tenths of a second.
GRACE = 5
#: Sets up a host: the names of the hosts, the loopback device, no IPv6. The host ends when its standard input is
#: closed.
SETUP = """
mount -t tmpfs tmpfs /tmp && printf %s "$1" > /tmp/hosts && mount --bind /tmp/hosts /etc/hosts &&
umount --lazy /tmp && ip link set lo up &&
if [ -e /proc/sys/net/ipv6 ]; then echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6; fi && echo ready && exec cat
"""
#: Ends all programs of a host, and waits until the programs have ended.
END = f"""
kill -TERM -1 2> /dev/null
for _ in $(seq {GRACE}); do kill -0 -1 2> /dev/null || exit 0; sleep 0.1; done
"""
#: If the lateness of packets exceeds this fraction of the shortest round trip, results are doubtful.
MOST_LATENESS = 0.1


@dataclass(kw_only=True)
class Program:
    """A program to start in a host."""

    host: str
    """Name of the host."""
    words: Sequence[str]
    """Name and arguments of the program."""
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    """The program's process, once it has started."""
    exit_code: int | None = None
    """Exit code of the program; None if it did not start, or if it was ended with the emulation."""

    def to_dict(self) -> dict[str, Any]:
        """Returns the program as in the answer in JSON."""
        return {"host": self.host, "command": shlex.join(self.words), "exit_code": self.exit_code}


@dataclass(frozen=True, kw_only=True)
class Host:
    """A running host."""

    name: str
    process: subprocess.Popen[bytes]

    def command(self, words: Sequence[str]) -> list[str]:
        """Returns the command that runs a program in this host."""
        spaces = f"/proc/{self.process.pid}/ns"
        entered = [f"--net={spaces}/net", f"--mount={spaces}/mnt", f"--pid={spaces}/pid_for_children"]
        return ["nsenter", *entered, "--", "sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", str(Path.cwd()), *words]


@dataclass(frozen=True, kw_only=True)
class Emulated:
    """The result of an emulation."""

    result: RunResult
    """The result of the simulated network."""
    report: Mapping[str, Any]
    """Lateness of packets, and limits of the result."""
    programs: Sequence[Program]
    """The programs, with their exit codes."""

    def to_dict(self) -> dict[str, Any]:
        """Returns the answer as JSON. An emulation has no fingerprint, because it cannot be repeated exactly."""
        answer = self.result.to_dict()
        del answer["fingerprint"]
        return answer | {"emulation": {**self.report, "programs": [one.to_dict() for one in self.programs]}}


def emulate(
    scenario: Scenario | str | os.PathLike[str],
    programs: Sequence[Program],
    *,
    seed: int | None = None,
    is_over: Callable[[], bool] = lambda: False,
    on_ready: Callable[[Sequence[Host]], object] = lambda _: None,
    output: IO[Any] | None = None,
) -> Emulated:
    """Emulates a scenario until its end, until all programs have ended, or until `is_over` returns true.

    Args:
        scenario: A scenario, the path of a TOML file, or the name of a shipped one.
        programs: Programs to start, in order.
        seed: Seed of every random choice of the network.
        is_over: Called regularly.
        on_ready: Called once the hosts are running.
        output: Standard output of the programs.

    Raises:
        InputError: If the scenario or the machine is not suited, or a program cannot be started; lists every fault.
    """
    if faults := unsuited():
        raise InputError(faults)
    case = read(scenario).accepted()
    warn(case.warnings)
    try:
        known = _core.emulated_hosts(case, current())
        addresses = {name: address for name, address, _ in known}
        if faults := list(_wrong(programs, addresses)):
            raise InputError(faults)
        with ExitStack() as running:
            running.callback(_wait, programs)
            hosts = [running.enter_context(_host(name, addresses)) for name in addresses]
            for host in hosts:
                _await(host)
            devices = [
                running.enter_context(_device(host, setup)) for host, (*_, setup) in zip(hosts, known, strict=True)
            ]
            on_ready(hosts)
            should_continue = _continuation({host.name: host for host in hosts}, programs, is_over, output)
            ended = _core.emulate(case, seed, devices, should_continue, current())
            _end([host for host in hosts if any(program.host == host.name for program in programs)])
    except OSError as error:
        raise InputError.saying(f"cannot emulate: {error}") from None
    answer, report = map(json.loads, ended)
    answer["tcp"] = "of the hosts' kernels and programs, in real time"
    return Emulated(result=RunResult._of(answer, None), report=report, programs=programs)


def unsuited() -> list[Fault]:
    """Returns the reasons why this machine or this process cannot emulate."""
    if sys.platform != "linux":
        return [Fault.saying("emulate needs Linux: its hosts are network namespaces")]
    faults = []
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", Path("/proc/self/status").read_text(), re.MULTILINE)
    own = int(found[1], 16) if found else 0
    if missing := [name for name, bit in CAPABILITIES.items() if not own >> bit & 1]:
        faults.append(Fault.saying(f"emulate needs {' and '.join(missing)}: run it as root, such as with sudo"))
    if not Path(TUN).exists():
        faults.append(Fault.saying(f"emulate needs {TUN}: load the kernel's module tun (modprobe tun)"))
    for tool, package in TOOLS.items():
        if shutil.which(tool) is None:
            faults.append(Fault.saying(f"emulate needs the program {tool}: install the package {package}"))
    return faults


def _wrong(programs: Sequence[Program], hosts: Mapping[str, str]) -> Iterator[Fault]:
    """Yields the faults of programs."""
    for program in programs:
        if program.host not in hosts:
            yield Fault.of_choice("host", program.host, "a host with a TCP flow", hosts)
        if not program.words:
            yield Fault.of_option("host", program.host, "has no program: write -- host NAME PROGRAM [ARGUMENTS]")
        elif shutil.which(program.words[0]) is None:
            yield Fault.of_option("program", program.words[0], "is not found, or is not executable")


@contextmanager
def _host(name: str, addresses: Mapping[str, str]) -> Iterator[Host]:
    """Starts a host, and ends it and all its programs after the block."""
    known = "".join(f"{address} {name}\n" for name, address in addresses.items() if re.fullmatch(r"[\w.-]+", name))
    process = subprocess.Popen(
        [
            "unshare",
            "--net",
            "--pid",
            "--fork",
            "--mount-proc",
            "sh",
            "-c",
            SETUP,
            "sh",
            f"127.0.0.1 localhost\n{known}",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Ctrl-C does not reach the host's process.
        start_new_session=True,
    )
    with process:
        try:
            yield Host(name=name, process=process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()


def _await(host: Host) -> None:
    """Waits until a host is set up."""
    out, err = host.process.stdout, host.process.stderr
    assert out is not None and err is not None
    if out.readline() != b"ready\n":
        raise _unready(host, err.read().decode(errors="replace").strip())


@contextmanager
def _device(host: Host, commands: str) -> Iterator[int]:
    """Creates the TUN device of a host, which is removed after the block. Yields its descriptor."""
    import ctypes
    import fcntl

    def opened() -> int:
        # Use a new thread, because a thread that has entered a namespace cannot easily return.
        with Path(f"/proc/{host.process.pid}/ns/net").open() as space:
            if ctypes.CDLL(None, use_errno=True).setns(space.fileno(), 0):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return os.open(TUN, os.O_RDWR | os.O_NONBLOCK)

    try:
        with ThreadPoolExecutor(1) as thread:
            descriptor = thread.submit(opened).result()
    except OSError as error:
        raise _unready(host, str(error)) from None
    try:
        fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", DEVICE, IFF_TUN | IFF_NO_PI))
        done = subprocess.run(host.command(["sh", "-e"]), input=commands.encode(), capture_output=True)
        if done.returncode:
            raise _unready(host, done.stderr.decode(errors="replace").strip())
        yield descriptor
    finally:
        os.close(descriptor)


def _unready(host: Host, problem: str) -> InputError:
    return InputError.saying(f"cannot create host {shown(host.name)}: {problem}")


def _continuation(
    hosts: Mapping[str, Host], programs: Sequence[Program], is_over: Callable[[], bool], output: IO[Any] | None
) -> Callable[[], bool]:
    """Returns the function that starts programs one after another.

    That function returns whether the emulation continues.
    """
    waiting = list(programs)
    started = time.monotonic() - GAP_SECONDS

    def should_continue() -> bool:
        nonlocal started
        if is_over():
            return False
        if waiting and time.monotonic() >= started + GAP_SECONDS:
            program = waiting.pop(0)
            command = hosts[program.host].command(program.words)
            stdin = None if len(programs) == 1 else subprocess.DEVNULL
            program.process = subprocess.Popen(command, stdin=stdin, stdout=output)
            started = time.monotonic()
        for program in programs:
            if program.process is not None:
                program.exit_code = program.process.poll()
        return not programs or any(program.exit_code is None for program in programs)

    return should_continue


def _end(hosts: Sequence[Host]) -> None:
    """Ends the programs of the given hosts, so that the programs can write their remaining output."""
    enders = [subprocess.Popen(host.command(["sh", "-c", END]), stdin=subprocess.DEVNULL) for host in hosts]
    for ender in enders:
        ender.wait()


def _wait(programs: Sequence[Program]) -> None:
    """Waits until programs that received a signal have ended."""
    for program in programs:
        if program.process is not None:
            program.process.wait()


def doubts(report: Mapping[str, Any]) -> list[str]:
    """Returns warnings about the results of an emulation."""
    late, shortest = report["lateness_us"]["p99"], report["shortest_round_trip_us"]
    if late is None or late <= shortest * MOST_LATENESS:
        return []
    return [
        f"1 % of the packets were {late:.3g} us late or more, and the shortest round trip is {shortest:.3g} us: "
        "do not trust results that depend on delays this short"
    ]
