"""Common mistakes, and messages that tell users how to correct each mistake."""

from __future__ import annotations

import inspect
import pydoc

import pydantic
import pytest

import celltrain as ct
from celltrain.model.base import Model

LAN = {"sources": 2, "link_delay": "5us", "buffer_cells": 100, "policy": ct.TailDrop(), "duration": "10ms"}


@pytest.fixture(scope="module")
def lan() -> ct.Scenario:
    return ct.n_source(**LAN)


def test_a_results_store_can_be_opened_by_its_folder(lan, tmp_path):
    """Regression: this raised a TypeError about `manifest`."""
    made = ct.sweep(lan, seeds=1, store=tmp_path / "store")
    assert ct.Store(tmp_path / "store").wide() == ct.Store(str(tmp_path / "store")).wide() == made.wide()
    with pytest.raises(ct.StoreError, match="is not there"):
        ct.Store(tmp_path / "nowhere")
    with pytest.raises(ct.StoreError, match="path = 5 is not a path"):
        ct.Store(5)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            lambda: ct.n_source(**{**LAN, "link_delay": 5e-6}),
            'link_delay = 5e-06 is not a time with its unit, such as "5us"',
        ),
        (
            lambda: ct.n_source(**{**LAN, "link_rate": 155}),
            'link_rate = 155 is not a rate with its unit, such as "155.52Mbps"',
        ),
        (lambda: ct.NSource(sources=5, link_delay=5e-6), 'link_delay = 5e-06 is not a text with a unit, such as "5us"'),
        (lambda: ct.Vanilla(mss=512), 'mss = 512 is not a text with a unit, such as "512B"'),
        (lambda: ct.n_source(**LAN).replace(duration=5), 'duration = 5 is not a text with a unit, such as "10s"'),
        (lambda: ct.run(ct.n_source(**LAN), step=1e-3), 'step = 0.001 is not a time with its unit, such as "5us"'),
    ],
)
def test_the_error_for_a_number_without_its_unit_shows_the_correct_form(call, expected):
    with pytest.raises(ct.ScenarioError) as refused:
        call()
    assert expected in str(refused.value)


def test_the_error_for_a_congestion_control_given_as_a_tcp_variant_shows_the_correct_setting(
    celltrain, tmp_path, small
):
    path = tmp_path / "cubic.toml"
    path.write_text(f"{small.read_text()}\n[tcp.cubic]\n")
    answer = celltrain("check", path)
    assert answer.code == 2
    assert (
        'tcp.cubic is unknown: cubic is a congestion control; write congestion = "cubic" below [tcp.vanilla]'
        in answer.err
    )
    path.write_text(f"{small.read_text()}\n[tcp.cubick]\n")
    assert "it must be one of vanilla" in celltrain("check", path).err
    with pytest.raises(AttributeError, match=r'congestion control of a TCP: Vanilla\(congestion="cubic"\)'):
        ct.Cubic  # noqa: B018


def test_python_class_names_use_the_usual_spelling_of_protocol_names():
    assert {"NewReno", "NewRenoHoe"} <= {*ct.tcp.__all__}
    with pytest.raises(AttributeError, match="did you mean NewReno"):
        ct.Newreno  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean SelectiveDrop"):
        ct.SelectivDrop  # noqa: B018


def test_the_error_for_an_unknown_port_lists_all_ports(celltrain, lan, tmp_path):
    """If the unknown name is a node, the list begins with the ports of this node."""
    with pytest.raises(
        ct.ScenarioError, match=r'ports = "sw2" is not a port of this network; choose from sw\d->'
    ) as refused:
        ct.run(lan, trace="queue", ports="sw2")
    named = str(refused.value).partition("choose from ")[2].split(", ")
    assert "sw2" in named[0]
    assert "sw1->sw2" in named
    answer = celltrain("run", "lan-epd", "--trace", "queue", "--port", "sw2", "--out", tmp_path / "out")
    assert answer.code == 2
    assert "and 14 more" in answer.err


def test_validation_error_messages_omit_the_prefix_added_by_pydantic():
    """pydantic prefixes the message of a ValueError with "Value error, "."""

    class Even(Model):
        cells: int

        @pydantic.field_validator("cells")
        @classmethod
        def even(cls, value: int) -> int:
            if value % 2:
                raise ValueError("Is odd")
            return value

    with pytest.raises(ct.ScenarioError, match=r"^Even: cells = 3 is refused: is odd$"):
        Even(cells=3)


def test_the_title_of_a_plot_names_the_plotted_quantity(lan):
    pytest.importorskip("matplotlib")
    plot = ct.run(lan.replace(name="two"), trace=["queue", "occupancy", "cwnd", "delivered"]).plot
    titles = [getattr(plot, name)().get_title().splitlines() for name in ("queue", "occupancy", "cwnd", "delivered")]
    assert [first for first, *_ in titles] == [
        "Queue at sw1->sw2",
        "Cells of each connection in the queue",
        "Congestion windows",
        "Goodput",
    ]
    assert {second for _, second, *_ in titles} == {"two, seed 1"}


def test_the_help_text_of_each_python_function_shows_options_and_an_example():
    """Decorating a function for argument checks preserves its help."""
    text = pydoc.plain(pydoc.render_doc(ct.sweep))
    assert "over: 'Mapping[str, Any] | None'" in text
    assert ">>> store = ct.sweep(lan, over=" in text
    assert next(iter(inspect.signature(ct.compare).parameters)) == "scenarios"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["tail_drop", "lan-epd"],
            "tail_drop is a policy, which a scenario has at a port, as in celltrain compare lan-epd",
        ),
        (["lan-epd", "--vary", "policy=tail_drop,fba"], "did you mean port.bottleneck.policy?"),
        (["lan-epd", "--vary", "buffer=1000,2000"], "did you mean port.bottleneck.buffer?"),
        (["lan-epd", "--measures", "efficency"], 'Unknown measure "efficency". Did you mean efficiency?'),
        (["lan-epd", "--measures", "ports.bottleneck.max_queue"], "did you mean max_queue_cells?"),
    ],
)
def test_error_messages_for_common_mistakes_in_comparisons_show_the_correct_form(celltrain, arguments, expected):
    answer = celltrain("compare", *arguments, "--seeds", 1)
    assert answer.code == 2
    assert expected in " ".join(answer.err.split())


def test_the_explain_command_defines_measures_and_suggests_the_names_of_models_in_capital_letters(celltrain):
    """Regression: `explain` suggested file for fairness, and greedy for RED."""
    assert "fairness is a measure: Jain's fairness index" in celltrain("explain", "fairness").out
    assert celltrain("explain", "efficiency", "--json").json["kind"] == "measures"
    assert "did you mean red" in celltrain("explain", "RED").err


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("run", "lan-epd", "--fingerprints"), "--fingerprints needs --seeds N"),
        (("run", "lan-epd", "--log"), "--log changes the figure"),
        (("compare", "lan-epd", "lan-sack", "--md", "--tex"), "--tex cannot be combined with --md"),
        (("reproduce", "af-96-1269", "--resume"), "--resume needs the folder"),
        (("reproduce", "af-96-1269", "--toml"), "--toml prints one scenario"),
        (("sweep", "plan.toml", "--store", "store", "--retry-failed"), "--retry-failed needs --resume"),
    ],
)
def test_the_error_for_an_option_without_a_value_names_the_option_as_typed(celltrain, arguments, option):
    refused = celltrain(*arguments)
    assert refused.code == 2
    assert refused.err.startswith(option)
    assert " = " not in refused.err
