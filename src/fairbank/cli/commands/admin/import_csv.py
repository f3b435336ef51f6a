"""Command `fairbank import`: finished jobs of any scheduler from a CSV file."""

from __future__ import annotations

import os
from argparse import ArgumentTypeError
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, BinaryIO

from fairbank.cli.commands.slurm.history import (
    COVER_ABOUT,
    exceeds_credit,
    of_resources,
    price_text,
    runs_without_owner,
    show_history,
)
from fairbank.cli.framework.command import Command, Noun
from fairbank.cli.framework.exit_codes import FOUND, NOT_DONE
from fairbank.cli.framework.options import (
    add_clusters,
    add_forms,
    add_option,
    add_writing,
    file_read,
)
from fairbank.cli.framework.progress import Stages, add_progress
from fairbank.cli.framework.selectors import find_cluster
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.report.cells import counted
from fairbank.report.columns import Column, text

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from fairbank.cli.framework.context import Context
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
    columns = {**_column_file(options.columns), **_typed_columns(options.column)}
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


def _column_file(name: str | None) -> dict[str, str]:
    if name is None:
        return {}
    from fairbank.core.settings_file import parse_toml, read_whole

    with _opened(name, "--columns") as file:
        table = parse_toml(read_whole(file, name, field="--columns"), name, field="--columns")
    for field, column in table.items():
        if not isinstance(column, str):
            raise InvalidInput(
                f"{name}: {field} is not the name of a column",
                field="--columns",
                remedy='write for example: job_id = "Job Id"',
            )
    return table


def _add_csv(parser: Parser) -> None:
    add_table(parser)
    add_clusters(parser, "the cluster of the jobs, of the bank's settings (default: the only one)")
    add_option(parser, "--cover", COVER_ABOUT)
    add_writing(parser, reason="none", keyed=False)
    add_progress(parser)


def _csv_columns(_: Namespace) -> list[Column]:
    from fairbank.csv_import.jobs import JOB_FIELDS

    return file_columns(JOB_FIELDS)


def _csv(context: Context, options: Namespace) -> int:
    from fairbank.bank.pricing import known_qos
    from fairbank.csv_import.jobs import JOB_FIELDS, JobFileRules, parse_job_table
    from fairbank.rest.client.bank_client import BankClient, parse_cluster
    from fairbank.slurm.history_import import import_jobs
    from fairbank.slurm.host.users import find_uid

    bank = BankClient(context.client)
    bank.require_full_view()
    cluster = parse_cluster(find_cluster(context))
    now = int(context.bank_time)
    rules = JobFileRules(
        partitions=cluster.partitions,
        check_qos=partial(
            known_qos,
            qos_factors=cluster.qos_factors,
            qos_resources=cluster.qos_resources,
            field="qos",
        ),
        uid_of=find_uid,
        now=now,
        zone=context.zone,
    )
    jobs = parse_job_table(read_csv(options, JOB_FIELDS), rules)

    source = os.path.basename(options.file)
    with Stages(options) as progress:
        predicted = import_jobs(
            bank,
            cluster,
            jobs,
            now,
            source=source,
            cover=options.cover,
            dry_run=True,
            progress=progress,
        )
    if options.dry_run or not predicted.charged:
        left_out = show_history(context, predicted, dry_run=options.dry_run)
        return FOUND if left_out else 0
    runs = counted(len(predicted.charged), "run")
    unknown = runs_without_owner(predicted)
    among = f", {unknown} among them" if unknown else ""
    price = of_resources(predicted.charged, price_text)
    question = f"Charge {runs}, {price}{among}?"
    if not context.confirm(question, needs_yes=exceeds_credit(predicted)):
        context.note("Nothing was changed.")
        return NOT_DONE
    with Stages(options) as progress:
        result = import_jobs(
            bank, cluster, jobs, now, source=source, cover=options.cover, progress=progress
        )
    return FOUND if show_history(context, result, dry_run=False) else 0


COMMAND = Noun(
    "import what other programs recorded",
    {
        "csv": Command(
            "charge finished jobs of any scheduler, each once; exit code 8 if some are left out",
            (
                "{} jobs.csv --dry-run",
                "{} jobs.csv --column job_id=JobID --column account=Project",
                "{} jobs.csv --columns pbs.toml --delimiter ';' --cover",
            ),
            _add_csv,
            _csv,
            reads=False,
            columns=_csv_columns,
        )
    },
)
