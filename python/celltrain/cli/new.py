"""`celltrain new`: writes a scenario to start from."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Annotated

import typer

from celltrain.cli import completing, options, shell
from celltrain.cli.options import option


@shell.command(
    "celltrain new mine", "celltrain new far --like wan-epd", "celltrain new mine && celltrain run mine.toml"
)
def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The scenario's name; the file is NAME.toml.", show_default=False)
    ] = "",
    like: Annotated[
        str | None,
        option("SCENARIO", "Copy this shipped scenario instead.", autocompletion=completing.shipped_scenarios),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Write a commented scenario to start from: five TCP connections that share the buffer of a switch."""
    from celltrain.errors import Fault, InputError, OutputError
    from celltrain.model import shipped
    from celltrain.text import among, shown

    if not name:
        raise InputError([Fault.saying("NAME is missing: celltrain new mine writes mine.toml", key="NAME")])
    path = Path(name.removesuffix(".toml") + ".toml")
    if not re.fullmatch(r"[\w .+-]+", path.stem):
        raise InputError([Fault.of_option("NAME", name, "is not a name; use letters, digits, spaces and - _ + .")])
    if like is None:
        text = (Path(__file__).parent / "new.toml").read_text(encoding="utf-8")
    elif (found := shipped.found(like, "scenario", folder=None)) is not None:
        text = found[1]
    else:
        hint = among(like, shipped.names("scenario"))
        raise InputError([Fault.of_option("--like", like, f"is not a shipped scenario; {hint}")])
    text = re.sub(r"(?m)^name = .*$", f'name = "{path.stem}"', text, count=1)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise OutputError([Fault.of_file(str(path), "exists already; choose another name, or remove it")]) from None
    except OSError as error:
        raise OutputError([Fault.of_file(str(path), f"cannot be written: {error.strerror}")]) from None
    if as_json:
        shell.answer({"file": str(path)})
    else:
        typed = shown(shlex.quote(str(path)))
        shell.say(f"wrote {shown(path)}\nTo run it: celltrain run {typed}\nTo check a change: celltrain check {typed}")


COMMANDS = {"new": new}
