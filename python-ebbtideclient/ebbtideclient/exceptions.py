"""What the API refuses, as exceptions."""

from __future__ import annotations

from typing import Any


class ClientError(Exception):
    """Any failure of this library."""


class NoQuota(ClientError):
    """Quotas were asked for where none are kept."""


class Problem(ClientError):
    """An RFC 9457 problem document.

    `code` is stable (docs/reference/errors.md); `next_step` says what to do,
    if that is known; log lines of the request are marked with `request_id`.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        code: str = "",
        next_step: str = "",
        field: str = "",
        request_id: str = "",
    ) -> None:
        self.status = status
        self.detail = detail
        self.code = code
        self.next_step = next_step
        self.field = field
        self.request_id = request_id
        super().__init__(self._text())

    def _text(self) -> str:
        about = f"HTTP {self.status}"
        if self.code:
            about = f"{self.code}, {about}"
        lines = [f"{self.detail} ({about})"]
        if self.next_step:
            lines.append(f"Next step: {self.next_step}")
        if self.request_id:
            lines.append(f"Request: {self.request_id}")
        return "\n".join(lines)

    @classmethod
    def of(cls, status: int, body: Any, request_id: str = "") -> Problem:
        """The problem of an answer; a proxy may answer without one."""
        found = body if isinstance(body, dict) else {}
        return cls(
            status,
            found.get("detail") or found.get("title") or "The API said no",
            code=found.get("code", ""),
            next_step=found.get("next", ""),
            field=found.get("field", ""),
            request_id=found.get("request_id") or request_id,
        )
