"""`celltrain schema`: prints JSON Schemas."""

from __future__ import annotations

import json
from typing import Annotated

from celltrain.cli import options, shell
from celltrain.cli.options import flag


@shell.command(
    "celltrain schema > scenario.schema.json",
    "celltrain schema --plan > plan.schema.json",
    "celltrain schema --result > result.schema.json",
)
def schema(
    plan: Annotated[bool, flag("--plan", "Print the schema of sweep and tune plans instead.")] = False,
    result: Annotated[bool, flag("--result", "Print the schema of the answer of run --json.")] = False,
    as_json: options.Json = False,
) -> None:
    """Print the JSON Schema of a scenario, a plan or a result, for editors and other programs."""
    # The schema is JSON with and without --json.
    if plan and result:
        from celltrain.errors import Fault, InputError

        raise InputError([Fault.of_option("--plan", "", "and --result exclude each other; give one of them")])
    if result:
        from celltrain.model.measures import result_schema

        shell.answer(result_schema())
    elif plan:
        from celltrain.ensemble.plan.forms import json_schema

        shell.answer(json_schema())
    else:
        from celltrain import _core

        shell.answer(json.loads(_core.schema()))


COMMANDS = {"schema": schema}
