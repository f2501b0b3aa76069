"""`celltrain lab`: opens the page that runs the simulator in a browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path

from celltrain.cli import options, shell
from celltrain.model.files import named

#: Where `make lab` puts the page, and a wheel has it.
PAGE = Path(__file__).parent.parent / "lab.html"


@shell.command("celltrain lab", "celltrain lab --out lab.html", "celltrain lab --json")
def lab(out: Path | None = None, as_json: options.Json = False) -> None:
    """Open the lab in a browser: the simulator in one page, with a buffer to look into and exercises.

    Output:
        out (FILE): Write the page there instead: one file, which needs no network.
    """
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
    text = f"The lab is {address}: open it in a browser."
    if out is None and not as_json and webbrowser.open(address):
        text = f"The lab is open in a browser: {address}"
    shell.Output.of(as_json=as_json).tell({"page": address, "bytes": len(page)}, text)


COMMANDS = {"lab": lab}
