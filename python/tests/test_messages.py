"""All messages to users are listed in a file, so that every change to them is reviewed.

After a change, `CELLTRAIN_BLESS=1 pytest python/tests/test_messages.py` writes `messages.txt`. Read the difference
aloud: a message names the problem, its place and a valid alternative.
"""

from __future__ import annotations

import os
from pathlib import Path

import messages
import pytest

pytestmark = pytest.mark.slow

FILE = Path(__file__).with_name("messages.txt")


@pytest.mark.slow
def test_the_saved_list_of_messages_matches_the_code():
    listed = messages.listed()
    if os.environ.get("CELLTRAIN_BLESS"):
        FILE.write_text(listed, encoding="utf-8")
    assert FILE.read_text(encoding="utf-8") == listed


@pytest.mark.slow
def test_the_list_of_messages_includes_messages_of_rust_and_python_code():
    listed = messages.listed().splitlines()
    assert sum(line.startswith("celltrain/") for line in listed) > 100
    assert sum(line.startswith("celltrain-scenario/") for line in listed) > 100
