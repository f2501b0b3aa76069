"""`celltrain lab`: opens the page that runs the simulator in a browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

from celltrain.cli import options, shell
from celltrain.cli.options import OUTPUT, option
from celltrain.model.files import named

#: Where `make lab` puts the page, and a wheel has it.
PAGE = Path(__file__).parent.parent / "lab.html"


@shell.command("celltrain lab", "celltrain lab --out lab.html", "celltrain lab --json")
def lab(
    out: Annotated[
        Path | None,
        option("FILE", "Write the page there instead: one file, which needs no network.", panel=OUTPUT),
    ] = None,
    as_json: options.Json = False,
) -> int:
    """Open the lab in a browser: the simulator in one page, with a buffer to look into and exercises."""
    from celltrain.errors import CelltrainError

    try:
        page = PAGE.read_bytes()
    except FileNotFoundError:
        raise CelltrainError(
            "this installation came without the page of the lab, which is built before a wheel is: in a checkout, "
            "type make lab, which needs node 20 or later, npm, cargo and Rust's wasm target "
            "(rustup target add wasm32-unknown-unknown)"
        ) from None
    if out is not None:
        with named(out) as file:
            file.write(page)
    address = (out or PAGE).resolve().as_uri()
    opened = out is None and not as_json and webbrowser.open(address)
    if as_json:
        shell.answer({"page": address, "bytes": len(page)})
    elif opened:
        shell.say(f"The lab is open in a browser: {address}")
    else:
        shell.say(f"The lab is {address}: open it in a browser.")
    return shell.DONE


COMMANDS = {"lab": lab}
