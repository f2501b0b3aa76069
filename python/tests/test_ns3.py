from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

pytestmark = pytest.mark.slow
PROGRAM = [sys.executable, str(ROOT / "peers" / "ns3.py")]


def is_installed() -> bool:
    if shutil.which("g++") is None or shutil.which("pkg-config") is None:
        return False
    return subprocess.run(["pkg-config", "--exists", "ns3-core"], check=False).returncode == 0


@pytest.mark.nightly
@pytest.mark.skipif(not is_installed(), reason="ns-3 is not installed (Debian's package libns3-dev)")
def test_flow_completion_times_match_the_recorded_ns_3_simulation():
    done = subprocess.run(PROGRAM, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_comparison_with_ns_3_is_skipped_with_a_message_if_ns_3_is_not_installed(tmp_path):
    done = subprocess.run(PROGRAM, capture_output=True, text=True, timeout=60, env={"PATH": str(tmp_path)})
    assert done.returncode == 0
    assert "skipped: ns-3 or g++ is not installed" in done.stdout
