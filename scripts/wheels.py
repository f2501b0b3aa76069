#!/usr/bin/env python3
"""Builds wheels and an sdist into `dist/`, and checks on which systems each wheel runs.

`make wheel` runs it with the tools of `requirements/wheel.lock`, and then `python/tests/test_wheel.py`, which installs
the wheel of this machine.

One wheel serves every Python from 3.10 on (abi3). On Linux, zig links against the C library of manylinux2014, whatever
library this machine has. There is a wheel for each installed Rust target: `rustup target add aarch64-unknown-linux-gnu`
adds the second. Each wheel is built from the unpacked sdist, which shows that the sdist is complete.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
#: Wheels include the lab page if it was built before.
PAGE = DIST / "lab.html"
IN_PACKAGE = ROOT / "python" / "celltrain" / "lab.html"
BIN = Path(sys.executable).parent
LINUX = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
#: If Rust has both targets, the result is one universal wheel.
MACOS = ("x86_64-apple-darwin", "aarch64-apple-darwin")
#: Oldest supported C library: https://peps.python.org/pep-0599/.
MANYLINUX = "manylinux2014"
#: The oldest supported C library in auditwheel's notation: https://peps.python.org/pep-0600/.
NEWEST_SYMBOLS = "manylinux_2_17"
LARGEST_BYTES = 8_000_000


def main() -> int:
    """Builds and checks wheels, and prints a line for each file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--with-lab", action="store_true", help="fail if the page of the lab has not been built")
    with_lab: bool = parser.parse_args().with_lab
    if not PAGE.is_file():
        print(
            f"{PAGE} is missing, but a wheel needs this page for celltrain lab: build the page with make lab",
            file=sys.stderr,
        )
        if with_lab:
            return 1
    for old in built():
        old.unlink()
    if PAGE.is_file():
        shutil.copyfile(PAGE, IN_PACKAGE)
    else:
        # Remove an outdated lab page, because the wheel would include the page without notice.
        IN_PACKAGE.unlink(missing_ok=True)
    for target in targets():
        build(target)
    for path in built():
        print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")
    judged = [fine(wheel) for wheel in sorted(DIST.glob("*.whl"))]
    return int(not all(judged))


def built() -> list[Path]:
    """Returns the files that this script builds, if the files exist."""
    return sorted([*DIST.glob("*.whl"), *DIST.glob("*.tar.gz")])


def targets() -> list[str | None]:
    """Returns the targets for which this machine can build wheels; None means the machine itself."""
    root = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True).stdout.strip()
    there = {target for target in (*LINUX, *MACOS) if (Path(root) / "lib/rustlib" / target / "lib").is_dir()}
    if sys.platform == "linux":
        return [target for target in LINUX if target in there]
    return ["universal2-apple-darwin" if there.issuperset(MACOS) else None]


def build(target: str | None) -> None:
    """Builds the sdist, and a wheel from the sdist."""
    command = [str(BIN / "maturin"), "build", "--release", "--sdist", "--quiet", "--out", str(DIST)]
    if target is not None:
        command += ["--target", target]
    if target in LINUX:
        command += ["--zig", "--compatibility", MANYLINUX]
    paths = os.pathsep.join([str(BIN), os.environ["PATH"]])
    # The sdist is unpacked in another folder, but cargo uses the output compiled here.
    settings = {"PATH": paths, "CARGO_TARGET_DIR": str(ROOT / "target")}
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, **settings})


def fine(wheel: Path) -> bool:
    """Returns whether a wheel is small and needs no newer C library than its name allows."""
    faults = []
    if wheel.stat().st_size > LARGEST_BYTES:
        faults.append(f"larger than {LARGEST_BYTES / 1e6:.0f} MB")
    if sys.platform == "linux":
        said = subprocess.run([BIN / "auditwheel", "show", wheel], capture_output=True, text=True, check=False)
        words = " ".join((said.stdout + said.stderr).split())
        if f'platform tag: "{NEWEST_SYMBOLS}_' not in words:
            faults.append(f"not {NEWEST_SYMBOLS}: {words}")
    for fault in faults:
        print(f"{wheel.name}: {fault}", file=sys.stderr)
    return not faults


if __name__ == "__main__":
    sys.exit(main())
