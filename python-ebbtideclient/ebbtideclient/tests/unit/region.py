"""A server of HTTP that answers as docs/reference/openapi.json says.

It refuses what the document does not have, and its answers have every field.
"""

from __future__ import annotations

import copy
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from ebbtideclient.tests.unit import contract

REQUEST_ID = "req-0a23c05e-1488-433a-961d-6ff485062d2d"


class Region:
    """The server, and what it was asked."""

    def __init__(self) -> None:
        region = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                region.answer(self)

            do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

            def log_message(self, *_: Any) -> None:
                """Tests say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        # Each request: operation, path parameters, query, body, headers.
        self.asked: list[dict[str, Any]] = []
        # Answers by operation; each call takes the first, the last one stays.
        self.answers: dict[str, list[Any]] = {}
        # Problems by operation, and other statuses with a body.
        self.refusals: dict[str, tuple[int, Any]] = {}
        # How often it looks whether it is to end: half a second by itself.
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,)
        )
        self._thread.start()

    def close(self) -> None:
        """Ends the server."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def will_answer(self, operation: str, *answers: Any) -> None:
        """Gives these answers to an operation."""
        self.answers[operation] = list(answers)

    def refuse(self, operation: str, status: int, **problem: Any) -> None:
        """Refuses an operation with a problem document."""
        document = {"title": "", "request_id": REQUEST_ID, **problem}
        self.refusals[operation] = (status, document)

    def last(self) -> dict[str, Any]:
        """The last request."""
        return self.asked[-1]

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Judges a request by the document and answers it."""
        size = int(request.headers.get("Content-Length") or 0)
        raw = request.rfile.read(size)
        url = urlsplit(request.path)
        found = self._find(request.command, url.path)
        if found is None:
            _send(request, 404, {"detail": f"no path {url.path}"})
            return
        operation, values = found
        name = operation["operationId"]
        body = json.loads(raw) if raw else None
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        headers = {key.lower(): text for key, text in request.headers.items()}
        asked = {
            "operation": name,
            "path": values,
            "query": query,
            "body": body,
            "headers": headers,
        }
        self.asked.append(asked)
        faults = self._faults(operation, query, body)
        if faults:
            problem = {"detail": "; ".join(faults), "code": "EB-REST-003"}
            _send(request, 400, problem)
        elif name in self.refusals:
            _send(request, *self.refusals[name])
        else:
            _send(
                request, contract.status_of(operation), self._given(operation)
            )

    def _given(self, operation: dict[str, Any]) -> Any:
        answers = self.answers.get(operation["operationId"])
        if answers:
            return answers.pop(0) if len(answers) > 1 else answers[0]
        schema = contract.answer_schema(operation)
        return None if schema is None else contract.example(schema)

    @staticmethod
    def _find(method: str, path: str) -> Any:
        for template, known, operation in contract.operations():
            pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", template)
            match = re.fullmatch(pattern, path)
            if known == method and match:
                values = match.groupdict().items()
                return operation, {key: unquote(text) for key, text in values}
        return None

    @staticmethod
    def _faults(
        operation: dict[str, Any], query: dict[str, str], body: Any
    ) -> list[str]:
        parameters = operation.get("parameters", [])
        known = {p["name"] for p in parameters if p["in"] == "query"}
        faults = [f"no parameter {key}" for key in query if key not in known]
        if body is not None:
            if "requestBody" in operation:
                faults += contract.wrong(contract.body_schema(operation), body)
            else:
                faults.append("there is no body")
        return faults


def example(operation: str, sparse: bool = False) -> Any:
    """The answer of an operation, to change and give."""
    _, _, found = contract.operation(operation)
    schema = contract.answer_schema(found)
    assert schema is not None
    return copy.deepcopy(contract.example(schema, sparse=sparse))


def _send(request: BaseHTTPRequestHandler, status: int, body: Any) -> None:
    text = b"" if body is None else body
    if not isinstance(text, bytes):
        text = json.dumps(body).encode()
    request.send_response(status)
    request.send_header("X-Openstack-Request-Id", REQUEST_ID)
    request.send_header("Content-Length", str(len(text)))
    request.end_headers()
    request.wfile.write(text)
