"""Programs as transport stacks. Starts a program for each end of a flow, in which `celltrain_hosts::serve` answers.

cargo build --release
export CELLTRAIN_POLICIES=program
celltrain run lan-tail-drop --set "stack=program.py:Program:command=target/release/own-stack 16"
celltrain bottleneck --senders "program.py:Program:command=target/release/own-stack 16"
"""

from __future__ import annotations

import contextlib
import shlex
import struct
import subprocess

import celltrain as ct

#: Version of the form of calls and answers, which `celltrain_hosts::serve` checks.
VERSION = 1
#: Largest numbers of packets in an answer, and of bytes in a packet.
MOST_PACKETS, MOST_BYTES = 50_000, 65_535


class Program(ct.Stack):
    """A program that reads calls and writes packets; `command` is its name with arguments, `mss` its largest payload.

    The program reports received bytes and whether a transfer is complete, but no congestion window.
    """

    command = ""
    mss = 512

    def start(self) -> None:
        """Starts the program, and sends the side of the flow, its addresses and its seed to the program."""
        if not self.command:
            raise ValueError("command is empty; give the program, as in command=target/release/own-stack")
        self._process = subprocess.Popen(shlex.split(self.command), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        end, self._timeout = self.end, None
        self._calls = struct.pack("<BB4s4sQ", VERSION, end.side == "receiver", end.local, end.remote, end.seed)

    def on_packet(self, now: int, packet: bytes) -> None:
        """Passes a received packet on to the program."""
        self._calls += struct.pack("<cQI", b"p", now, len(packet)) + packet

    def poll(self, now: int) -> list[bytes]:
        """Returns the packets that the program sends."""
        calls, self._calls = self._calls + struct.pack("<cQ", b"q", now), b""
        with contextlib.suppress(BrokenPipeError):
            # A program that has ended gives no answer.
            self._process.stdin.write(calls)
            self._process.stdin.flush()
        count = self._number(MOST_PACKETS)
        packets = []
        for _ in range(count):
            packets.append(self._bytes(self._number(MOST_BYTES)))
        timeout, self.received, self.completed = self._read("<QQ?")
        self._timeout = None if timeout == 2**64 - 1 else max(timeout, now)
        return packets

    def next_timeout(self, now: int) -> int | None:
        """Returns the time of the program's next timeout."""
        return self._timeout

    def _number(self, most: int) -> int:
        [number] = self._read("<I")
        if number > most:
            raise ValueError(f"{self.command} wrote something else than an answer; does it print to standard output?")
        return number

    def _read(self, form: str) -> tuple:
        return struct.unpack(form, self._bytes(struct.calcsize(form)))

    def _bytes(self, count: int) -> bytes:
        found = self._process.stdout.read(count)
        if len(found) < count:
            raise EOFError(f"the program has ended with code {self._process.wait()}")
        return found

    def __del__(self) -> None:
        """Ends the program by closing its standard input."""
        if process := getattr(self, "_process", None):
            process.stdout.close()
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            try:
                process.wait(timeout=1)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
