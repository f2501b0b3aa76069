"""Cycles of imports among Rust modules, in graphs as cargo-modules prints them."""

from __future__ import annotations

import pytest

from rust_modules import cycles

MODULES = ["a", "b", "b::c", "engine", *(f"engine::fast{file}" for file in ("", "::nic", "::port", "::port::run"))]


def graph(modules: list[str], *uses: tuple[str, str]) -> str:
    """Returns a graph of modules with a type T in each."""
    lines = ['    "celltrain_core" [label="crate|celltrain_core"]; // "crate" node']
    for module in modules:
        lines += [
            f'    "celltrain_core::{module}" [label="pub(crate) mod|{module}"]; // "mod" node',
            f'    "celltrain_core::{module}::T" [label="pub struct|{module}::T"]; // "struct" node',
            f'    "celltrain_core::{module}" -> "celltrain_core::{module}::T" [label="owns"]; // "owns" edge',
        ]
    for user, used in uses:
        lines.append(f'    "celltrain_core::{user}" -> "celltrain_core::{used}" [label="uses"]; // "uses" edge')
    return "\n".join(lines)


def found(*uses: tuple[str, str]) -> list[list[str]]:
    return cycles(graph(MODULES), graph([*MODULES, "b::tests"], *uses))


@pytest.mark.parametrize(
    "uses",
    [
        [("a", "b::c::T"), ("b", "b::c"), ("b::c", "b::T")],
        [("a", "b::T"), ("b::T", "a::T")],
        [("a", "b::T"), ("b::tests", "a::T")],
        [("engine::fast::port", "engine::fast::port::run::T"), ("engine::fast::port::run", "engine::fast::port::T")],
    ],
    ids=["within a top-level module", "types in signatures", "tests", "within a part of the fast engine"],
)
def test_the_cycle_check_reports_no_cycle_for_rust_modules_that_import_in_one_direction(
    uses: list[tuple[str, str]],
) -> None:
    assert found(*uses) == []


@pytest.mark.parametrize(
    ("uses", "expected"),
    [
        ([("a", "b::T"), ("b::c", "a::T")], ["a", "b"]),
        (
            [("engine::fast::nic", "engine::fast::port::run::T"), ("engine::fast::port", "engine::fast::nic::T")],
            ["engine::fast::nic", "engine::fast::port"],
        ),
    ],
    ids=["top-level modules", "parts of the fast engine"],
)
def test_the_cycle_check_names_rust_modules_that_import_each_other(
    uses: list[tuple[str, str]], expected: list[str]
) -> None:
    [[first, *others]] = found(*uses)
    assert first == others[-1]
    assert sorted(others) == [f"celltrain_core::{module}" for module in expected]
