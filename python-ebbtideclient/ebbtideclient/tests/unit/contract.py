"""docs/reference/openapi.json, as the tests use it."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[4]
PATH = ROOT / "docs" / "reference" / "openapi.json"
DOCUMENT: dict[str, Any] = json.loads(PATH.read_text())
ID = "01a226c7-a911-76d6-9491-884987388e4e"
TIME = "2026-11-29T10:09:08.881Z"
# Texts whose form matters to a reader; any other one is the field's name.
TEXTS = {
    "price": "0.024671",
    "price_per_hour": "0.04",
    "max_price": "0.05",
    "charged": "0.04",
    "end": "preempted",
}


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, method and operation of each call."""
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


def operation(name: str) -> tuple[str, str, dict[str, Any]]:
    """The operation with this id."""
    for path, method, found in operations():
        if found["operationId"] == name:
            return path, method, found
    raise AssertionError(f"the document has no operation {name}")


def resolve(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without references; of `allOf` the sum of the properties."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return resolve(DOCUMENT["components"]["schemas"][name])
    if "allOf" in schema:
        parts = [resolve(part) for part in schema["allOf"]]
        properties: dict[str, Any] = {}
        for part in parts:
            properties.update(part.get("properties", {}))
        return {"type": "object", "properties": properties}
    return schema


def answer_schema(found: dict[str, Any]) -> dict[str, Any] | None:
    """The schema of the answer of success."""
    for status, response in found["responses"].items():
        if status.startswith("2"):
            content = response.get("content", {}).get("application/json")
            return resolve(content["schema"]) if content else None
    raise AssertionError("there is no answer of success")


def status_of(found: dict[str, Any]) -> int:
    """The status of success."""
    return next(int(s) for s in found["responses"] if s.startswith("2"))


def body_schema(found: dict[str, Any]) -> dict[str, Any]:
    """The schema of the request's body."""
    content = found["requestBody"]["content"]["application/json"]
    return resolve(content["schema"])


def can_be_left_out(schema: dict[str, Any]) -> bool:
    """Whether the document says that a field need not be in an answer."""
    return "; not there " in schema.get("description", "")


def example(
    schema: dict[str, Any], name: str = "", sparse: bool = False
) -> Any:
    """An answer with every field set, each list with one element.

    In a sparse one, of the fields that need not be there, objects are null
    and others are left out, as the scheduler does it.
    """
    schema = resolve(schema)
    kind = schema.get("type")
    if kind == "object":
        if "properties" in schema:
            found = {}
            for key, value in schema["properties"].items():
                # There is no page after the first.
                if key == "links":
                    continue
                if not (sparse and can_be_left_out(value)):
                    found[key] = example(value, key, sparse)
                elif "$ref" in value:
                    found[key] = None
            return found
        if "additionalProperties" in schema:
            return {"VCPU": example(schema["additionalProperties"])}
        return {}
    if kind == "array":
        return [example(schema["items"], name, sparse)]
    if kind == "boolean":
        return True
    if kind == "integer":
        return 3
    if kind == "number":
        return 0.5
    if schema.get("format") in ("uint64", "int64"):
        return "7"
    if name.endswith("_id") or name == "id":
        return ID
    if name.endswith("_at") or name in ("at", "since", "deadline"):
        return TIME
    return TEXTS.get(name, name)


def wrong(schema: dict[str, Any], value: Any, where: str = "") -> list[str]:
    """What of a body does not fit its schema."""
    schema = resolve(schema)
    kind = schema.get("type")
    if kind == "object" and isinstance(value, dict):
        properties = schema.get("properties")
        found = []
        for key, inner in value.items():
            place = f"{where}.{key}".lstrip(".")
            if properties is None:
                found += wrong(schema["additionalProperties"], inner, place)
            elif key not in properties:
                found.append(f"{place}: there is no such field")
            else:
                found += wrong(properties[key], inner, place)
        return found
    if kind == "array" and isinstance(value, list):
        return [
            w for inner in value for w in wrong(schema["items"], inner, where)
        ]
    types: dict[str, Any] = {
        "boolean": bool,
        "integer": int,
        "number": (int, float),
        "string": str,
    }
    if kind in types and isinstance(value, types[kind]):
        return []
    return [f"{where}: {value!r} is no {kind}"]
