"""SQL expressions that differ between databases."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    FunctionElement,
    Select,
    Text,
    literal_column,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler


class JsonMember(FunctionElement[str]):
    """Member of a JSON object as text; NULL if missing."""

    name = "fact"
    type = Text()
    inherit_cache = True


class Bytewise(FunctionElement[str]):
    """Text that is ordered and compared by bytes, whatever the collation of the database."""

    name = "bytewise"
    type = Text()
    inherit_cache = True


class FewIds(FunctionElement[int]):
    """Few ids that a subquery finds. PostgreSQL may expect many and scan the table instead of its
    index.
    """

    name = "few"
    type = BigInteger()
    inherit_cache = True


def json_member(details: ColumnElement[Any], member: str) -> JsonMember:
    """Return the expression for a member. `member` is a constant, never input."""
    return JsonMember(details, literal_column(f"'{member}'"))


def bytewise(text: ColumnElement[Any]) -> Bytewise:
    return Bytewise(text)


def in_few(column: ColumnElement[Any], found: Select[Any]) -> ColumnElement[bool]:
    return column.op("IN", is_comparison=True, return_type=Boolean())(
        FewIds(found.scalar_subquery())
    )


def _parts(element: FunctionElement[Any], compiler: SQLCompiler, **how: Any) -> list[str]:
    return [compiler.process(each, **how) for each in element.clauses]


@compiles(JsonMember, "sqlite")
def _fact_in_sqlite(element: JsonMember, compiler: SQLCompiler, **how: Any) -> str:
    details, member = _parts(element, compiler, **how)
    return f"json_extract({details}, '$.' || {member})"


@compiles(JsonMember, "postgresql")
def _fact_in_postgres(element: JsonMember, compiler: SQLCompiler, **how: Any) -> str:
    details, member = _parts(element, compiler, **how)
    return f"({details}::json ->> {member})"


@compiles(Bytewise, "sqlite")
def _bytewise_in_sqlite(element: Bytewise, compiler: SQLCompiler, **how: Any) -> str:
    (text,) = _parts(element, compiler, **how)
    return text


@compiles(Bytewise, "postgresql")
def _bytewise_in_postgres(element: Bytewise, compiler: SQLCompiler, **how: Any) -> str:
    (text,) = _parts(element, compiler, **how)
    return f'({text} COLLATE "C")'


@compiles(FewIds, "sqlite")
def _few_in_sqlite(element: FewIds, compiler: SQLCompiler, **how: Any) -> str:
    (found,) = _parts(element, compiler, **how)
    return found


@compiles(FewIds, "postgresql")
def _few_in_postgres(element: FewIds, compiler: SQLCompiler, **how: Any) -> str:
    (found,) = _parts(element, compiler, **how)
    return f"(SELECT unnest(ARRAY{found}))"
