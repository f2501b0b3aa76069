"""smoltcp over cells has the same throughput as in smoltcp's own network simulation."""

from __future__ import annotations

import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "peers"))
import netsim


@pytest.mark.parametrize("flows", [1, 2])
def test_flow_rates_equal_those_of_a_smoltcp_snapshot_if_the_application_reads_after_acknowledging(flows: int) -> None:
    theirs = netsim.multiflow()[flows]
    ours = netsim.several(flows, netsim.FILE_BYTES / theirs.least)
    assert ours.throughput == pytest.approx(theirs.throughput, rel=netsim.TOLERANCE)
    assert ours.drops == pytest.approx(theirs.drops, rel=0.02)


def test_flow_rates_differ_from_those_of_a_smoltcp_snapshot_if_data_is_read_before_acknowledging() -> None:
    theirs = netsim.multiflow()[1]
    ours = netsim.several(1, netsim.FILE_BYTES / theirs.least, reads="before_acks")
    assert ours.throughput > 4 * theirs.throughput
