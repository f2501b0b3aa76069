"""Programs as transport stacks: starts one for each end of a flow. `celltrain_hosts::serve` is the program's side.

cargo build --release
celltrain run lan-tail-drop --set "stack=program.py:Program:command=target/release/own-stack 16"
celltrain bottleneck --senders "program.py:Program:command=target/release/own-stack 16"
"""

from __future__ import annotations

import contextlib
import shlex
import struct
import subprocess

import celltrain as ct


class Program(ct.Stack):
    """A program that reads calls and writes packets; `command` is its name with arguments, `mss` its largest payload."""

    command = ""
    mss = 512

    def start(self) -> None:
        """Starts the program, and tells it the end of the flow."""
        self._process = subprocess.Popen(shlex.split(self.command), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        end, self._timeout = self.end, None
        self._calls = struct.pack("<B4s4sQ", end.side == "receiver", end.local, end.remote, end.seed)

    def on_packet(self, now: int, packet: bytes) -> None:
        """Passes a packet on."""
        self._calls += struct.pack("<cQI", b"p", now, len(packet)) + packet

    def poll(self, now: int) -> list[bytes]:
        """Returns the program's packets."""
        calls, self._calls = self._calls + struct.pack("<cQ", b"q", now), b""
        with contextlib.suppress(BrokenPipeError):
            # If the program has ended, it has no answer either.
            self._process.stdin.write(calls)
            self._process.stdin.flush()
        [count] = self._read("<I")
        packets = []
        for _ in range(count):
            [length] = self._read("<I")
            packets.append(self._bytes(length))
        timeout, self.received, self.completed = self._read("<QQ?")
        self._timeout = None if timeout == 2**64 - 1 else max(timeout, now)
        return packets

    def next_timeout(self, now: int) -> int | None:
        """Returns the program's timeout."""
        return self._timeout

    def _read(self, form: str) -> tuple:
        return struct.unpack(form, self._bytes(struct.calcsize(form)))

    def _bytes(self, count: int) -> bytes:
        found = self._process.stdout.read(count)
        if len(found) < count:
            raise EOFError(f"the program has ended with code {self._process.wait()}")
        return found

    def __del__(self) -> None:
        """Ends the program by closing its input."""
        if process := getattr(self, "_process", None):
            process.stdout.close()
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            process.wait()
