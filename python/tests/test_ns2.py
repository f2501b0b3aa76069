from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

pytestmark = pytest.mark.slow


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 is not installed (the command ns; Debian's package ns2)")
def test_the_simulated_tcp_agrees_with_the_tcp_of_ns_2():
    program = [sys.executable, str(ROOT / "peers" / "ns2.py")]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_comparison_with_ns_2_is_skipped_with_a_message_if_ns_2_is_not_installed(tmp_path):
    program = [sys.executable, str(ROOT / "peers" / "ns2.py")]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, env={"PATH": str(tmp_path)})
    assert done.returncode == 0
    assert "skipped: ns-2 is not installed" in done.stdout
