"""A study as a form: its parameters with their ranges, words and the values of each preset, and its arms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.lab import Study

KINDS = {"integer": "int", "number": "float", "boolean": "bool", "string": "text", "array": "list"}
_LIMITS = {
    "minimum": "minimum",
    "maximum": "maximum",
    "exclusiveMinimum": "above",
    "exclusiveMaximum": "below",
    "minItems": "least",
    "maxItems": "most",
}


def form(study: Study) -> dict[str, Any]:
    """Everything that a page needs to ask for a run of the study."""
    presets = {name: _values(study, name) for name in study.presets}
    schema = study.model.model_json_schema()
    parts = _parts(study)
    return {
        "name": study.name,
        "title": study.title,
        "question": study.question,
        "source": study.source,
        "claims": len(study.claims),
        "headlines": [
            {"id": claim.id, "statement": claim.statement} for claim in study.ordered_claims() if claim.headline
        ],
        "presets": {
            name: {
                "seeds": preset.seeds,
                "cost": preset.cost,
                "values": presets[name],
                "arms": sorted(study.usual_arms(name)),
            }
            for name, preset in study.presets.items()
        },
        "parameters": [
            {"name": name, "part": parts[name], **_field(each, schema.get("$defs", {}))}
            for name, each in schema["properties"].items()
        ],
        "arms": [
            {
                "name": arm.name,
                "part": arm.part,
                "description": arm.description,
                "reads": sorted(arm.read),
                "optional": arm.optional,
            }
            for arm in study.arms.values()
        ],
        "settings": _fixed(study),
    }


def _values(study: Study, preset: str) -> dict[str, Any]:
    """The preset's value of every parameter, and under ``setting.parameter`` of those that a named setting fixes."""
    values = study.resolve(preset, {}).model_dump(mode="json")
    for setting, fixed in _fixed(study).items():
        own = study.resolve(preset, {}, setting).model_dump(mode="json")
        values |= {f"{setting}.{name}": own[name] for name in fixed}
    return values


def _fixed(study: Study) -> dict[str, list[str]]:
    """The parameters that a named setting has its own values of, by itself or in one of the presets."""
    layers = [study.settings, *(preset.settings for preset in study.presets.values())]
    return {
        name: list(dict.fromkeys(each for layer in layers for each in layer.get(name, {}))) for name in study.settings
    }


def _parts(study: Study) -> dict[str, str]:
    """The part that alone has a parameter; empty where several have it, or the study itself."""
    names = study.model.model_fields
    owners = {name: [part.name for part in study.parts if name in part.model.model_fields] for name in names}
    return {name: parts[0] if len(parts) == 1 else "" for name, parts in owners.items()}


def _field(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """One parameter: its kind, its range in the schema's own numbers, its choices and its words."""
    one, optional = _alone(schema, definitions)
    kind = "choice" if "enum" in one or "const" in one else KINDS.get(str(one.get("type")), "text")
    made: dict[str, Any] = {
        "kind": kind,
        "description": schema.get("description", ""),
        "optional": optional,
        **{ours: one[theirs] for theirs, ours in _LIMITS.items() if theirs in one},
    }
    if kind == "choice":
        made["choices"] = one.get("enum", [one.get("const")])
    if kind == "list":
        items = one.get("items") or (one.get("prefixItems") or [{}])[0]
        made["items"] = _field(items, definitions)
    return made


def _alone(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """The schema of the value itself, and whether none is allowed beside it."""
    choices = schema.get("anyOf")
    if choices is None:
        return _resolved(schema, definitions), False
    others = [each for each in choices if each.get("type") != "null"]
    optional = len(others) < len(choices)
    return (_resolved(others[0], definitions) if len(others) == 1 else {}), optional


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    return {**definitions[reference.rpartition("/")[2]], **schema} if reference else schema
