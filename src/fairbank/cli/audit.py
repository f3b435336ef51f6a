"""`fairbank audit`: reads the books again; and writes down how far each is, to be kept elsewhere."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from fairbank.cli.command import Command, Noun
from fairbank.cli.exits import FOUND
from fairbank.cli.init import add_config
from fairbank.cli.output import Listing, show, shown_columns
from fairbank.cli.progress import Progress, add_progress
from fairbank.core.errors import Malformed, Unknown
from fairbank.report.cells import counted, plain
from fairbank.report.columns import Column, text

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.desk import Desk
    from fairbank.cli.parser import Parser

SHOWN = 50
COLUMNS = (
    Column("BOOK", text("book"), right=True),
    Column("ENTRY", text("entry"), right=True),
    Column("FINDING", text("what")),
)


def _add_verify(parser: Parser) -> None:
    add_config(parser)
    parser.add_argument(
        "--heads",
        metavar="FILE",
        help="what fairbank audit heads wrote earlier; - is standard input",
    )
    add_progress(parser)


def _verify(desk: Desk, options: Namespace) -> int:
    if shown_columns(desk, COLUMNS):
        return 0
    heads = {} if options.heads is None else read_heads(options.heads)
    with Progress("audit", options) as progress:
        progress.say(
            "every book, and the store as a whole, which takes longer the longer its file is"
        )
        verdict = desk.works.books.verify(options.config, heads, progress)
    if options.form or options.format:
        rows = [
            {"book": each.book, "entry": each.entry, "what": each.what} for each in verdict.findings
        ]
        counts = {"entries": verdict.entries, "books": verdict.books, "runs": verdict.runs}
        show(
            desk,
            Listing(
                "fairbank.finding/1",
                COLUMNS,
                rows,
                empty="Every row is as the journal says.",
                more=counts,
            ),
        )
        return FOUND if rows else 0
    for found in verdict.findings[:SHOWN]:
        where = f", entry {found.entry}" if found.entry is not None else ""
        desk.say(plain(f"x {_place(found.book)}{where}: {found.what}"))
    if len(verdict.findings) > SHOWN:
        desk.say(f"... and {len(verdict.findings) - SHOWN} more")
    judged = (
        f"{counted(len(verdict.findings), 'thing is', 'things are')} wrong"
        if verdict.findings
        else "every row is as the journal says"
    )
    read = f"{counted(verdict.entries, 'entry', 'entries')} of {counted(verdict.books, 'book')} and {counted(verdict.runs, 'run')}"
    desk.say(f"read {read}: {judged}")
    return FOUND if verdict.findings else 0


def _place(book: int | None) -> str:
    if book is None:
        return "the store"
    return f"allocation {book}" if book else "the office's book"


def read_heads(path: str) -> dict[int, tuple[int, bytes]]:
    """Book to (number, link) of its last entry. Raises Unknown, Malformed with the line."""
    try:
        if path == "-":
            lines = sys.stdin.readlines()
        else:
            with open(path, encoding="ascii") as file:
                lines = file.readlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise Unknown(
            f"cannot read {path}: {why}",
            field="--heads",
            remedy="name a file that fairbank audit heads wrote",
        ) from error
    heads = {}
    for number, line in enumerate(lines, 1):
        try:
            book, seq, link = json.loads(line)
            heads[int(book)] = (int(seq), bytes.fromhex(link))
        except (ValueError, TypeError) as bad:
            raise Malformed(
                f"{path}, line {number}: this is no head of a book",
                field="--heads",
                remedy="a line is [BOOK, NUMBER, LINK]",
            ) from bad
    if not heads:
        remedy = "name a file that fairbank audit heads wrote"
        raise Malformed(
            f"{path} is empty, so nothing could be compared", field="--heads", remedy=remedy
        )
    return heads


def _heads(desk: Desk, options: Namespace) -> int:
    for head in desk.works.books.heads(options.config):
        desk.say(json.dumps([head.book, head.seq, head.link.hex()]))
    return 0


COMMAND = Noun(
    "the books, read again",
    {
        "verify": Command(
            "read every entry again, compare every row; 8 when wrong",
            (
                "fairbank audit verify",
                "fairbank audit verify --heads monday.heads",
                "fairbank audit verify --json --progress=plain",
            ),
            _add_verify,
            _verify,
            asks=False,
        ),
        "heads": Command(
            "how far each book is now, to be kept elsewhere",
            (
                "fairbank audit heads > monday.heads",
                "fairbank audit heads | ssh safe tee monday.heads",
                "fairbank audit heads | wc -l",
            ),
            add_config,
            _heads,
            reads=False,
            asks=False,
        ),
    },
)
