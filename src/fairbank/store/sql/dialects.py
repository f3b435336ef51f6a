"""What databases say in different words: SQL expressions that are written out for each."""

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
    """A member of a JSON object as text, null where there is none."""

    name = "fact"
    type = Text()
    inherit_cache = True


class Bytewise(FunctionElement[str]):
    """A text that is ordered and compared by its bytes, whatever language the database was made for."""

    name = "bytewise"
    type = Text()
    inherit_cache = True


class FewIds(FunctionElement[int]):
    """The few numbers that a statement finds: PostgreSQL may guess that they are many, and then reads a whole table, not its index."""

    name = "few"
    type = BigInteger()
    inherit_cache = True


def json_member(details: ColumnElement[Any], member: str) -> JsonMember:
    """`member` is a word of ours, never a client's."""
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
