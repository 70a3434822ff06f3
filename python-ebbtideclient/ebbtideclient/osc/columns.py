"""How records of the API become columns of the openstack client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cliff import columns as cliff_columns


class Amount(cliff_columns.FormattableColumn):
    """A number for people: at most three decimals."""

    def human_readable(self) -> str:
        return number(self._value)


class Names(cliff_columns.FormattableColumn):
    """A list of texts."""

    def human_readable(self) -> str:
        return ", ".join(str(value) for value in self._value or [])


class Lines(cliff_columns.FormattableColumn):
    """A value that a command shows as several lines, and keeps for JSON."""

    def __init__(self, value: Any, lines: Iterable[str]) -> None:
        super().__init__(value)
        self._lines = list(lines)

    def human_readable(self) -> str:
        return "\n".join(self._lines)


def number(value: Any) -> str:
    """A number with at most three decimals."""
    if value is None:
        return ""
    return f"{float(value):.3f}".rstrip("0").rstrip(".")


@dataclass(frozen=True)
class Column:
    """A field of a record, and its title."""

    field: str
    title: str
    # Only with --long.
    long: bool = False
    shown: Callable[[Any], Any] | None = None

    def value(self, record: Mapping[str, Any]) -> Any:
        """The cell. A message that is not set is left out of answers."""
        value = record.get(self.field)
        if value is None:
            return ""
        return self.shown(value) if self.shown else value


def table(
    columns: Sequence[Column],
    records: Iterable[Mapping[str, Any]],
    long: bool = True,
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Titles and rows, for a lister."""
    used = [column for column in columns if long or not column.long]
    return (
        tuple(column.title for column in used),
        [tuple(c.value(record) for c in used) for record in records],
    )


def fields(
    columns: Sequence[Column], record: Mapping[str, Any]
) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Names of fields and their values, to show one record."""
    return (
        tuple(column.field for column in columns),
        tuple(column.value(record) for column in columns),
    )
