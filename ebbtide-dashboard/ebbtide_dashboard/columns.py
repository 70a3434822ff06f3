"""Columns of tables."""

from __future__ import annotations

from typing import Any

from horizon import tables


class Column(tables.Column):
    """A column whose title is in the language of each request.

    Horizon 23 makes a text of it when the module is read, in the language of
    the first request.
    """

    def __init__(self, transform: Any, verbose_name: Any, **more: Any) -> None:
        super().__init__(transform, verbose_name=verbose_name, **more)
        self.verbose_name = verbose_name

    def __str__(self) -> str:
        return str(self.verbose_name)
