"""smoltcp over cells has the throughput of its own network simulation."""

from __future__ import annotations

import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "peers"))
import netsim


@pytest.mark.parametrize("flows", [1, 2])
def test_flows_are_as_fast_as_in_smoltcps_snapshot_if_the_application_reads_after_acknowledgements(flows: int) -> None:
    theirs = netsim.multiflow()[flows]
    ours = netsim.several(flows, netsim.FILE_BYTES / theirs.least)
    assert ours.throughput == pytest.approx(theirs.throughput, rel=netsim.TOLERANCE)
    assert ours.drops == pytest.approx(theirs.drops, rel=0.02)


def test_reading_data_before_acknowledging_it_gives_other_rates_than_in_smoltcps_snapshot() -> None:
    theirs = netsim.multiflow()[1]
    ours = netsim.several(1, netsim.FILE_BYTES / theirs.least, reads="before_acks")
    assert ours.throughput > 4 * theirs.throughput
