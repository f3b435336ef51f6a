"""Command `fairbank storage`: measured use of storage, charged to the storage allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.commands.admin.csv_options import add_table, file_columns, read_csv
from fairbank.cli.commands.admin.import_result import charged_amounts
from fairbank.cli.framework.command import Command, Noun
from fairbank.cli.framework.exit_codes import FOUND, NOT_DONE
from fairbank.cli.framework.options import add_option, add_writing
from fairbank.core import ids
from fairbank.core.time import iso
from fairbank.core.units import counted
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.csv_import.storage import StorageResult
    from fairbank.report.columns import Column, Row


def _add_import(parser: Parser) -> None:
    add_table(parser)
    about = "name of the storage, such as home or scratch (default: storage)"
    add_option(parser, "--system NAME", about, default="storage")
    about = "resource that is charged (default: storage)"
    add_option(parser, "-r, --resource NAME", about, default="storage")
    add_writing(parser, reason="none", keyed=False)


def _columns(_: Namespace) -> list[Column]:
    from fairbank.csv_import.storage import STORAGE_FIELDS

    return file_columns(STORAGE_FIELDS)


def _import(context: Context, options: Namespace) -> int:
    from fairbank.csv_import.storage import STORAGE_FIELDS, import_storage, parse_storage_table
    from fairbank.rest.client.bank_client import BankClient

    system = ids.cluster(options.system, field="--system", noun="storage")
    resource = ids.kind(options.resource, field="--resource")
    bank = BankClient(context.client)
    bank.require_full_view()
    uses = parse_storage_table(read_csv(options, STORAGE_FIELDS), context.bank_time)
    result = import_storage(bank, uses, system=system, resource=resource, dry_run=True)
    if result.charged and not options.dry_run:
        price = charged_amounts(result.amounts, _price(result))
        needs_yes = result.amounts.written_off > 0
        count = counted(len(result.charged), "measurement")
        question = f"Charge {count} of {plain(resource)}, {price}?"
        if not context.confirm(question, needs_yes=needs_yes):
            context.note("Nothing was changed.")
            return NOT_DONE
        result = import_storage(bank, uses, system=system, resource=resource, dry_run=False)
    _show(context, result, system, resource, dry_run=options.dry_run)
    return FOUND if result.left else 0


def _price(result: StorageResult) -> int:
    return sum(use.amount for use in result.charged)


def _show(
    context: Context, result: StorageResult, system: str, resource: str, *, dry_run: bool
) -> None:
    """Print what was charged, and the use of the last day beside the quota.

    Args:
        context: the command.
        result: what was charged, or would be.
        system: name of the storage.
        resource: what was charged.
        dry_run: nothing was charged.
    """
    left = [f"{plain(use.account)}, {iso(use.day)[:10]}: {why}" for use, why in result.left]
    if context.options.form == "json":
        row = {"system": system, "resource": resource, **_as_row(result, dry_run=dry_run)}
        context.print_json("fairbank.storage-import/1", [row], left)
        return
    would = "would be " if dry_run else ""
    charged = charged_amounts(result.amounts, _price(result) if dry_run else None)
    name = system if system == resource else f"{system} ({resource})"
    context.print_text(
        f"{plain(name)}: {counted(len(result.charged), 'measurement')} {would}charged, {charged};"
        f" {result.known:,} known already"
    )
    for account, known in sorted(result.quotas.items()):
        over = "! over its quota: " if known.is_over else ""
        other = f", {float(known.elsewhere):.2f} TiB of it on other storage"
        context.print_text(
            f"{over}{plain(account)}: {float(known.total):.2f} TiB on"
            f" {iso(known.use.day)[:10]}{other if known.elsewhere else ''},"
            f" quota {float(known.quota):.2f} TiB"
        )
    context.note(*(f"! {line}" for line in left))


def _as_row(result: StorageResult, *, dry_run: bool) -> Row:
    """Return the result as data: `beyond_credit` as in an import of jobs (`history_row`)."""
    return {
        "dry_run": dry_run,
        "measurements": len(result.charged),
        "cost": _price(result),
        "beyond_credit": result.amounts.written_off,
        "charged": None if dry_run else result.amounts.charged,
        "written_off": None if dry_run else result.amounts.written_off,
        "known": result.known,
        "left_out": len(result.left),
        "quotas": [
            {
                "account": account,
                "day": iso(known.use.day)[:10],
                "tib": float(known.total),
                "elsewhere_tib": float(known.elsewhere),
                "quota_tib": float(known.quota),
                "is_over": known.is_over,
            }
            for account, known in sorted(result.quotas.items())
        ],
    }


COMMAND = Noun(
    "charge measured use of storage",
    {
        "import": Command(
            "charge measured TiB-days, each project and day once; exit code 8 if some are left out",
            (
                "{} usage.csv --dry-run",
                "{} usage.csv --system scratch",
                "{} usage.csv --column account=Project --column tib_days=TiB",
            ),
            _add_import,
            _import,
            reads=False,
            columns=_columns,
        )
    },
)
