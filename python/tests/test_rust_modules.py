"""Cycles of imports among Rust modules, in graphs as cargo-modules prints them."""

from __future__ import annotations

import pytest

from rust_modules import cycles


def graph(*uses: tuple[str, str]) -> str:
    """Returns a graph of the modules a, b and b::c and the fast engine's files, with a type T in each."""
    modules = ["a", "b", "b::c", "engine", *(f"engine::fast{file}" for file in ("", "::port", "::port::run"))]
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


@pytest.mark.parametrize(
    "uses",
    [
        [("a", "b::c::T"), ("b", "b::c"), ("b::c", "b::T")],
        [("a", "b::T"), ("b::T", "a::T")],
        [("engine::fast", "engine::fast::port::T"), ("engine::fast::port::run", "a::T")],
    ],
    ids=["within a top-level module", "types in signatures", "files in one order"],
)
def test_modules_that_import_in_one_direction_have_no_cycle(uses: list[tuple[str, str]]) -> None:
    assert cycles(graph(*uses)) == []


@pytest.mark.parametrize(
    ("uses", "expected"),
    [
        ([("a", "b::T"), ("b::c", "a::T")], ["a", "b"]),
        (
            [
                ("engine::fast::port", "engine::fast::port::run::T"),
                ("engine::fast::port::run", "engine::fast::port::T"),
            ],
            ["engine::fast::port", "engine::fast::port::run"],
        ),
    ],
    ids=["top-level modules", "a file and its parent in the fast engine"],
)
def test_modules_that_import_each_other_are_named(uses: list[tuple[str, str]], expected: list[str]) -> None:
    [[first, *others]] = cycles(graph(*uses))
    assert first == others[-1]
    assert sorted(others) == [f"celltrain_core::{module}" for module in expected]
