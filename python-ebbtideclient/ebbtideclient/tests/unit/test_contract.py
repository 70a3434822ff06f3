"""The library against the API's OpenAPI document."""

from __future__ import annotations

import inspect
import re
import unittest

import ebbtideclient
from ebbtideclient.tests.unit import contract
from ebbtideclient.v1 import calls, client


class TestContract(unittest.TestCase):
    def test_every_call_is_in_the_document(self) -> None:
        for call in calls.ALL:
            with self.subTest(call.operation):
                path, method, found = contract.operation(call.operation)
                self.assertEqual(
                    (path, method), ("/v1" + call.path, call.method)
                )
                known = {
                    parameter["name"]
                    for parameter in found.get("parameters", [])
                    if parameter["in"] == "query"
                }
                self.assertLessEqual(set(call.query), known)

    def test_every_field_of_a_body_is_in_the_document(self) -> None:
        for call in calls.ALL:
            for field in call.body:
                with self.subTest(f"{call.operation} {field}"):
                    _, _, found = contract.operation(call.operation)
                    schema = contract.body_schema(found)
                    for part in field.split("."):
                        schema = contract.resolve(schema)["properties"][part]

    def test_what_comes_in_pages_has_links_and_a_marker(self) -> None:
        paged = {
            found["operationId"]
            for _, _, found in contract.operations()
            if "links"
            in (contract.answer_schema(found) or {}).get("properties", {})
        }
        called = {call.operation for call in calls.ALL}
        self.assertEqual(
            paged & called,
            {call.operation for call in calls.ALL if call.pages},
        )
        for call in calls.ALL:
            if call.pages:
                _, _, found = contract.operation(call.operation)
                schema = contract.answer_schema(found) or {}
                self.assertIn(call.pages, schema["properties"])
                self.assertLessEqual({"limit", "marker"}, set(call.query))

    def test_every_call_has_a_method(self) -> None:
        source = inspect.getsource(client)
        used = set(re.findall(r"calls\.([A-Z_]{2,})", source))
        self.assertEqual(
            {
                name
                for name, value in vars(calls).items()
                if isinstance(value, calls.Call)
            },
            used,
        )

    def test_the_version_is_that_of_the_scheduler(self) -> None:
        cargo = (contract.ROOT / "Cargo.toml").read_text()
        section = cargo.partition("[workspace.package]")[2]
        found = re.search(r'^version = "(.*)"', section, re.MULTILINE)
        assert found is not None
        self.assertEqual(found[1], ebbtideclient.__version__)
