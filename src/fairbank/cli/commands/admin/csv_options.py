"""Options of commands that read a CSV file, and the file that they name."""

from __future__ import annotations

from argparse import ArgumentTypeError
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from fairbank.cli.framework.options import add_forms, add_option, file_read
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.report.columns import Column, text

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from fairbank.cli.framework.parser import Parser
    from fairbank.csv_import.table import CsvTable, TableFields


def _column(text: str) -> tuple[str, str]:
    field, is_named, column = text.partition("=")
    if field and is_named and column:
        return field, column
    raise ArgumentTypeError(f"{text[:40]!r} is not FIELD=NAME")


def _delimiter(text: str) -> str:
    if text == "tab":
        return "\t"
    if len(text) == 1 and text not in '"\n\r':
        return text
    raise ArgumentTypeError(f"{text[:40]!r} is not one character, or tab")


def add_table(parser: Parser) -> None:
    """Add the options of a CSV file and its columns, and of the output."""
    add_option(parser, "file FILE", "CSV in UTF-8 with a header line; - is standard input")
    about = "the column of a field, where it is not named like the field; may be repeated"
    add_option(parser, "--column FIELD=NAME", about, type=_column, action="append", default=[])
    about = 'a TOML file with such names: job_id = "Job Id"'
    add_option(parser, "--columns FILE", about)
    about = "the character between cells, or tab (default: a comma)"
    add_option(parser, "--delimiter CHAR", about, type=_delimiter, default=",")
    output = parser.add_argument_group("Output")
    add_forms(output, {"--json": "JSON, with a named schema"})
    add_option(output, "--helpformat", "list the columns of the file, each with its meaning")


def file_columns(fields: TableFields) -> list[Column]:
    """Return the columns that a file may have, for --helpformat."""
    return [Column(name, text(name)) for name in (*fields.required, *fields.optional)]


def read_csv(options: Namespace, fields: TableFields) -> CsvTable:
    """Return the table of the file that the options name. Raises InvalidInput."""
    from fairbank.csv_import.table import BYTES_MAX, read_table

    with _opened(options.file, "FILE") as file:
        content = file.read(BYTES_MAX + 1)
    columns = {**_column_file(options.columns, fields), **_typed_columns(options.column)}
    return read_table(content, fields, columns, delimiter=options.delimiter)


@contextmanager
def _opened(name: str, field: str) -> Iterator[BinaryIO]:
    """Open a file for bytes. Raises NotFound with the option that named it."""
    try:
        with open(file_read(name), "rb") as file:
            yield file
    except OSError as error:
        raise NotFound(
            f"cannot read {name}: {error.strerror}",
            field=field,
            remedy="name an existing file that you may read",
        ) from error


def _typed_columns(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the columns by field. Raises InvalidInput if a field has two."""
    columns: dict[str, str] = {}
    for field, column in pairs:
        if field in columns:
            raise InvalidInput(
                f"'{field[:40]}={column[:40]}' names a second column of the field, after"
                f" {columns[field][:40]!r}",
                field="--column",
                remedy="name one column for each field",
            )
        columns[field] = column
    return columns


def _column_file(name: str | None, fields: TableFields) -> dict[str, str]:
    """Return the columns by field of the file that --columns names. Raises InvalidInput."""
    if name is None:
        return {}
    from fairbank.core.settings_file import parse_toml, read_whole

    with _opened(name, "--columns") as file:
        table = parse_toml(read_whole(file, name, field="--columns"), name, field="--columns")
    known = (*fields.required, *fields.optional)
    for field, column in table.items():
        if field not in known:
            raise InvalidInput(
                f"{name}: {field[:64]!r} is not a field",
                field="--columns",
                remedy=f"one of {', '.join(known)}",
            )
        if not isinstance(column, str):
            raise InvalidInput(
                f"{name}: {field} is not the name of a column",
                field="--columns",
                remedy=f'a name in quotes: {field} = "NAME"',
            )
    return table
