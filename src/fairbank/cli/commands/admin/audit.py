"""Command `fairbank audit`: verify the journals, and print their last entries."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from fairbank.cli.framework.command import Command, Noun
from fairbank.cli.framework.exit_codes import FOUND
from fairbank.cli.framework.options import add_config, add_option
from fairbank.cli.framework.output import Listing, show
from fairbank.cli.framework.progress import ProgressBar, add_progress
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.units import counted
from fairbank.report.cells import plain
from fairbank.report.columns import Column, text

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.bank.audit import Head
    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser

SHOWN = 50
_HEADS_MAX = 256 << 20
"""Largest file of last entries in bytes: those of more than a million journals."""
COLUMNS = (
    Column("JOURNAL", text("journal"), right=True),
    Column("ENTRY", text("entry"), right=True),
    Column("FINDING", text("what")),
)


HEAD_COLUMNS = (
    Column("JOURNAL", text("journal"), right=True),
    Column("SEQ", text("seq"), right=True),
    Column("LINK", text("link")),
)


def _add_verify(parser: Parser) -> None:
    add_config(parser)
    about = "what fairbank audit heads wrote earlier; - is standard input"
    add_option(parser, "--heads FILE", about)
    add_progress(parser)


def _verify(context: Context, options: Namespace) -> int:
    from functools import partial

    from fairbank.service.ops.audit_processes import verify
    from fairbank.setup.bank_settings import bank_places, opened_store, settings_of
    from fairbank.store.factory import open_store

    heads = {} if options.heads is None else read_heads(options.heads)
    settings = settings_of(options.config)
    places = bank_places(options.config, settings)
    context.note_places(places)
    context.bank = settings.server.name
    with ProgressBar("audit", options) as progress:
        progress.show(
            "every journal, and the store as a whole, which takes longer the longer its file is"
        )
        reopen = partial(open_store, settings.store.url, journal=settings.store.journal)
        with opened_store(options.config, settings) as store:
            verdict = verify(store, reopen, heads, progress)
    if options.form or options.format:
        rows = [
            {"journal": finding.journal, "entry": finding.entry, "what": finding.what}
            for finding in verdict.findings
        ]
        counts = {"entries": verdict.entries, "journals": verdict.journals, "runs": verdict.runs}
        empty = "Every row is as the journal says."
        more = {**places, **counts}
        show(context, Listing("fairbank.finding/1", COLUMNS, rows, empty=empty, more=more))
        return FOUND if rows else 0
    count = len(verdict.findings)
    for finding in verdict.findings[:SHOWN]:
        where = f", entry {finding.entry}" if finding.entry is not None else ""
        what = context.in_zone(finding.what)
        context.print_text(plain(f"x {_place(finding.journal)}{where}: {what}"))
    if count > SHOWN:
        context.print_text(f"... and {count - SHOWN} more")
    result = "every row is as the journal says"
    if count:
        result = f"{counted(count, 'thing is', 'things are')} wrong"
    context.print_text(
        f"read {counted(verdict.entries, 'entry', 'entries')} of"
        f" {counted(verdict.journals, 'journal')} and {counted(verdict.runs, 'run')}: {result}"
    )
    return FOUND if verdict.findings else 0


def _place(journal: int | None) -> str:
    if journal is None:
        return "the store"
    return f"allocation {journal}" if journal else "the registry"


def read_heads(path: str) -> dict[int, Head]:
    """Return the last entry of each journal, as written earlier. Raises NotFound, InvalidInput."""
    from fairbank.bank.audit import Head
    from fairbank.core.settings_file import read_whole

    try:
        if path == "-":
            lines = sys.stdin.read(_HEADS_MAX).splitlines()
        else:
            with open(path, "rb") as file:
                content = read_whole(file, path, field="--heads", most=_HEADS_MAX)
            lines = content.decode("ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise NotFound(
            f"cannot read {path}: {why}",
            field="--heads",
            remedy="name a file that fairbank audit heads wrote",
        ) from error
    heads = {}
    for number, line in enumerate(_one_a_line(lines), 1):
        try:
            journal, seq, link = json.loads(line)
            heads[int(journal)] = Head(int(journal), int(seq), bytes.fromhex(link))
        except (ValueError, TypeError) as bad:
            raise InvalidInput(
                f"{path}, line {number}: this is not a head of a journal",
                field="--heads",
                remedy="a line is [JOURNAL, NUMBER, LINK]",
            ) from bad
    if not heads:
        raise InvalidInput(
            f"{path} is empty, so nothing could be compared",
            field="--heads",
            remedy="name a file that fairbank audit heads wrote",
        )
    return heads


def _one_a_line(lines: list[str]) -> list[str]:
    """Return one line for each journal, also of what `fairbank audit heads --json` prints."""
    try:
        rows = json.loads("".join(lines))["data"]
        return [json.dumps([row["journal"], row["seq"], row["link"]]) for row in rows]
    except (ValueError, TypeError, KeyError):
        return lines  # one a line already, or reported with its line


def _heads(context: Context, options: Namespace) -> int:
    from fairbank.service.ops.audit import Audit
    from fairbank.setup.bank_settings import opened_store, settings_of

    settings = settings_of(options.config)
    context.bank = settings.server.name
    context.bank_is_named = True  # each line is JSON, to be read by --heads
    with opened_store(options.config, settings) as store:
        heads = Audit(store).journal_heads()
    rows = [
        {"journal": head.allocation, "seq": head.seq, "link": head.link.hex()} for head in heads
    ]
    if options.form or options.format:
        return show(context, Listing("fairbank.head/1", HEAD_COLUMNS, rows))
    for row in rows:
        context.print_text(json.dumps(list(row.values())))
    return 0


COMMAND = Noun(
    "verification of the ledger",
    {
        "verify": Command(
            "recompute the ledger and compare every row; exit code 8 if wrong",
            ("{}", "{} --heads monday.heads", "{} --json --progress=plain"),
            _add_verify,
            _verify,
            asks=False,
            columns=COLUMNS,
        ),
        "heads": Command(
            "show the last link of each journal, to be stored elsewhere",
            ("{} > monday.heads", "{} | ssh safe tee monday.heads", "{} --json"),
            add_config,
            _heads,
            asks=False,
            columns=HEAD_COLUMNS,
        ),
    },
)
