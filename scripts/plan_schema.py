"""Writes python/celltrain/ensemble/plan/plan.schema.json, the JSON Schema of plans, from the classes that read them.

    python scripts/plan_schema.py            writes the file

`celltrain schema --plan` prints it. python/tests/test_plan_schema.py checks that it is current.
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

from pydantic.json_schema import CoreModeRef, CoreRef, DefsRef, GenerateJsonSchema
from pydantic_core import core_schema

from celltrain.ensemble.plan import forms

SCHEMA = Path(forms.__file__).with_name("plan.schema.json")


class PlanSchema(GenerateJsonSchema):
    """Generates the JSON Schema of forms: without null, which TOML lacks, and without unknown keys."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> dict[str, Any]:
        """Leaves out null: None means that the key is absent."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> dict[str, Any]:
        """Leaves out defaults that are None or tables."""
        written = super().default_schema(schema)
        if written.get("default") is None or isinstance(written["default"], dict):
            written.pop("default", None)
        return written

    def model_schema(self, schema: core_schema.ModelSchema) -> dict[str, Any]:
        """Adds the required keys of a table, and the descriptions from docstrings."""
        form: type[forms.Form] = schema["cls"]
        required = {"required": list(form.needs)} if form.needs else {}
        written = {**super().model_schema(schema), "title": form.__name__.removesuffix("Form"), **required}
        for name in form.needs:
            least = {"array": "minItems", "object": "minProperties"}.get(written["properties"][name].get("type", ""))
            written["properties"][name] = {**({least: 1} if least else {}), **written["properties"][name]}
        for base in reversed(form.__mro__[: form.__mro__.index(forms.Form)]):
            about, _, keys = (inspect.getdoc(base) or "").partition("\n\nAttributes:\n")
            written["description"] = " ".join(about.split())
            for name, text in re.findall(r"^    (\w+): ((?:.|\n      )+)", keys, re.MULTILINE):
                written["properties"][name]["description"] = " ".join(text.split())
        return {**written, "additionalProperties": False}

    def get_defs_ref(self, core_mode_ref: CoreModeRef) -> DefsRef:
        """Returns the name of a table: the name of its class without the ending `Form`."""
        core_ref, mode = core_mode_ref
        return super().get_defs_ref((CoreRef(core_ref.replace("Form:", ":")), mode))

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Returns False, because titles in the schema would only repeat the keys."""
        return False


def written() -> str:
    """Returns the content of the file."""
    schema = forms.PlanForm.model_json_schema(schema_generator=PlanSchema)
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(written(), encoding="utf-8")
