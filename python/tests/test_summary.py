"""The one-line summaries of scenarios."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import SMALL

from celltrain.cli.catalog import entries
from celltrain.errors import ScenarioError
from celltrain.model.network import RECOVERY, tcp_summary


def with_tcp(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(f"{SMALL}\n{text}")
    return path


def test_the_summary_of_a_scenario_without_a_tcp_table_shows_the_default_tcp(small: Path) -> None:
    assert tcp_summary(small) == "vanilla (no fast retransmit, 100 ms ticks)"
    assert tcp_summary({}) == "vanilla (no fast retransmit, 100 ms ticks)"


def test_the_summary_of_every_tcp_variant_names_its_loss_recovery_method() -> None:
    assert set(RECOVERY) == {entry.name for entry in entries("tcp")}


def test_the_tcp_summary_states_the_timer_clock_the_congestion_control_and_whether_pacing_is_on(tmp_path: Path) -> None:
    text = '[tcp.sack]\ntimer_granularity = "0.5ms"\ncongestion = "cubic"\npacing_rate = "20Mbps"\n'
    wanted = "sack with cubic (selective acknowledgements, 500 us ticks, paced at 20 Mbps)"
    assert tcp_summary(with_tcp(tmp_path, text)) == wanted
    text = '[tcp.sack]\nwindows.pacing = "window"\nstart.hystart = "on"\n'
    wanted = "sack (selective acknowledgements, 100 ms ticks, paced by the window, HyStart++)"
    assert tcp_summary(with_tcp(tmp_path, text)) == wanted


def test_the_tcp_summary_distinguishes_clocks_with_random_phases_from_synchronous_clocks(tmp_path: Path) -> None:
    wanted = "vanilla (no fast retransmit, 100 ms ticks, random phases)"
    assert tcp_summary(with_tcp(tmp_path, '[tcp.vanilla]\ntimer.tick_phase = "random"\n')) == wanted
    common = with_tcp(tmp_path, '[tcp.vanilla]\ntimer.tick_phase = "common"\n')
    assert tcp_summary(common) == "vanilla (no fast retransmit, 100 ms ticks)"


def test_the_tcp_summary_names_sizes_that_differ_from_the_defaults(tmp_path: Path) -> None:
    text = '[tcp.sack]\nmss = "1460B"\nreceive_window = "16MB"\n'
    wanted = "sack (selective acknowledgements, mss 1460 B, window 16 MB, 100 ms ticks)"
    assert tcp_summary(with_tcp(tmp_path, text)) == wanted
    hoe = "newreno_hoe (mss 1460 B, window 16 MB, 100 ms ticks)"
    assert tcp_summary(with_tcp(tmp_path, text.replace("sack", "newreno_hoe"))) == hoe, "one short line"
    usual = '[tcp.sack]\nmss = "0.512kB"\nreceive_window = "65535B"\n'
    assert tcp_summary(with_tcp(tmp_path, usual)) == "sack (selective acknowledgements, 100 ms ticks)"


def test_the_summary_of_a_protocol_stack_names_settings_that_differ_from_the_defaults(tmp_path: Path) -> None:
    for settings, wanted in [("", ""), ('nagle = false\nack_delay = "0s"\n', " (ack_delay=0s, nagle=false)")]:
        assert tcp_summary(with_tcp(tmp_path, f"[stack.smoltcp]\n{settings}")).endswith(f"with reno{wanted}")
    own = {"stack": {"python": {"class": "mine:Mine", "settings": {"bug": True, "window": 4}}}}
    assert tcp_summary(own) == "mine:Mine (bug=true, window=4)"


def test_scenarios_with_different_tcp_settings_have_different_tcp_summaries(tmp_path: Path) -> None:
    for variant in RECOVERY:
        for more in (
            "",
            'mss = "1460B"\nreceive_window = "16MB"\ntimer.tick_phase = "random"\npacing_rate = "20Mbps"\n',
        ):
            table = f"[tcp.{variant}]\n{more}"
            by_default, of_papers = (
                tcp_summary(with_tcp(tmp_path, f'{table}rules = "{rules}"\n')) for rules in ("rfc", "paper")
            )
            assert by_default == tcp_summary(with_tcp(tmp_path, table)), variant
            assert "rules of the papers" not in by_default
            assert "rules of the papers" in of_papers[:80], "a figure shows only the first 80 characters"


def test_the_tcp_summary_lists_the_flows_that_use_a_different_tcp(tmp_path: Path) -> None:
    text = '[flow.tcp1.tcp.vanilla]\ndelayed_acks = "200ms"\n[flow.tcp2.tcp.reno]\n[flow.tcp3.traffic.constant_rate]\nrate = "1Mbps"\n'
    vanilla, reno = "vanilla (no fast retransmit, 100 ms ticks)", "reno (fast retransmit and recovery, 100 ms ticks)"
    assert tcp_summary(with_tcp(tmp_path, text)) == f"{vanilla}; tcp2: {reno}; tcp3 without TCP"


def test_the_tcp_summary_lists_only_the_first_of_many_flows_that_use_a_different_tcp() -> None:
    flows = {f"udp{number}": {"traffic": {"on_off": {}}} for number in range(1, 6)}
    wanted = "; udp1 without TCP; udp2 without TCP; udp3 without TCP; 2 more flows with settings of their own"
    assert tcp_summary({"flow": flows}).endswith(wanted)


def test_an_invalid_scenario_has_no_tcp_summary(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="tcp"):
        tcp_summary(with_tcp(tmp_path, "[tcp.vegas]\n"))
