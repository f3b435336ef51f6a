"""Command `fairbank storage`: measured use of storage, charged to the storage allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.commands.admin.import_csv import add_table, read_csv
from fairbank.cli.framework.command import Command, Noun
from fairbank.cli.framework.exit_codes import FOUND, NOT_DONE
from fairbank.cli.framework.options import add_option, add_writing
from fairbank.core import ids
from fairbank.core.time import iso
from fairbank.core.units import show_su
from fairbank.report.cells import counted, plain

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.slurm.storage_usage import StorageResult, StorageUse


def _add_import(parser: Parser) -> None:
    add_table(parser)
    about = "name of the storage, such as home or scratch (default: storage)"
    add_option(parser, "--system NAME", about, default="storage")
    about = "resource that is charged (default: storage)"
    add_option(parser, "-r, --resource NAME", about, default="storage")
    add_writing(parser, reason="none", keyed=False)


def _import(context: Context, options: Namespace) -> int:
    from fairbank.slurm.bank import BankClient
    from fairbank.slurm.storage_usage import STORAGE_FIELDS, import_storage, parse_storage_table

    system = ids.cluster(options.system, field="--system")
    resource = ids.kind(options.resource, field="--resource")
    bank = BankClient(context.client)
    bank.require_full_view()
    uses = parse_storage_table(read_csv(options, STORAGE_FIELDS), int(context.now()))
    result = import_storage(bank, uses, system=system, resource=resource, dry_run=True)
    if result.charged and not options.dry_run:
        amount = show_su(sum(use.amount for use in result.charged))
        if not context.confirm(f"Charge {amount} SU of storage?"):
            context.note("Nothing was changed.")
            return NOT_DONE
        result = import_storage(bank, uses, system=system, resource=resource, dry_run=False)
    _show(context, result, uses, "would be " if options.dry_run else "")
    return FOUND if result.left else 0


def _show(context: Context, result: StorageResult, uses: list[StorageUse], would: str) -> None:
    """Print what was charged, and the use of the last day beside the quota."""
    context.print_text(
        f"storage: {counted(len(result.charged), 'measurement')} {would}charged,"
        f" {show_su(sum(use.amount for use in result.charged))} SU; {result.known:,} known already"
    )
    last = {use.account: use for use in sorted(uses, key=lambda use: use.day)}
    for account, quota in sorted(result.quotas.items()):
        use = last[account]
        over = "! over its quota: " if use.tib_days > quota else ""
        context.print_text(
            f"{over}{plain(account)}: {float(use.tib_days):.2f} TiB on {iso(use.day)[:10]},"
            f" quota {float(quota):.2f} TiB"
        )
    context.note(
        *(f"! {plain(use.account)}, {iso(use.day)[:10]}: {why}" for use, why in result.left)
    )


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
        )
    },
)
