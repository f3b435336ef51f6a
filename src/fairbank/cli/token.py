"""`fairbank token`: opaque tokens, for signing in over the network. A secret is shown once and never again.

These commands print no entry for `fairbank undo`: what takes a token back is to revoke it, and what was revoked stays so, since somebody
had a reason not to trust it.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fairbank.cli.command import Command, Noun
from fairbank.cli.options import add_writing, at_least_one, number
from fairbank.cli.output import Listing, show, shown_columns
from fairbank.cli.people import uid_of, user_name
from fairbank.cli.posting import Posting, post, tell
from fairbank.core.errors import Conflict
from fairbank.report.columns import Column, moment, text

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import TextIO

    from fairbank.cli.desk import Desk
    from fairbank.cli.parser import Parser
    from fairbank.report.columns import Row

COLUMNS = (
    Column("ID", text("id"), right=True),
    Column("LABEL", text("label")),
    Column("USER", text("user"), drop=1),
    Column("SCOPES", lambda row, look: ",".join(row["scopes"])),
    Column("CREATED", moment("created"), drop=3),
    Column("EXPIRES", moment("expires")),
    Column("REVOKED", moment("revoked"), drop=2),
    Column("MADE-BY", text("parent"), right=True, drop=4),
)
DAYS = 90


def _add_list(parser: Parser) -> None:
    parser.add_argument(
        "-u", "--user", metavar="USER", help="another user's, by name or number; for staff"
    )


def _list(desk: Desk, options: Namespace) -> int:
    if shown_columns(desk, COLUMNS):
        return 0
    uid = None if options.user is None else uid_of(options.user)
    rows = [{**row, "user": user_name(row["uid"])} for row in desk.rows("/token", {"uid": uid})]
    show(desk, Listing("fairbank.token/1", COLUMNS, rows, empty="There is no token."))
    return 0


def _add_create(parser: Parser) -> None:
    parser.add_argument("label", metavar="LABEL", help="what it is for")
    parser.add_argument(
        "--scopes",
        metavar="SCOPE,...",
        default="read",
        help="read, write, agent:CLUSTER (usual: read)",
    )
    parser.add_argument(
        "--days",
        metavar="N",
        type=at_least_one,
        default=DAYS,
        help=f"how long it is good (usual: {DAYS})",
    )
    parser.add_argument("-u", "--user", metavar="USER", help="whose it is to be; for staff")
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="write the secret to a new file that only you can read, instead of showing it",
    )
    add_writing(parser, reason="none", keyed=False)


def _create(desk: Desk, options: Namespace) -> int:
    scopes = [scope for scope in options.scopes.replace(",", " ").split() if scope]
    body = {"label": options.label, "scopes": scopes, "days": options.days}
    if options.user is not None:
        body["uid"] = uid_of(options.user)
    posting = Posting("POST", "/token", body, f"Make a token {options.label}?")
    if options.output is None:
        return _tell(desk, post(desk, posting))
    with _new_file(options.output) as file:
        answer = post(desk, posting)
        if answer is not None:
            file.write(answer["secret"] + "\n")
    if answer is None:
        os.unlink(options.output)
        return tell(desk, "fairbank.token/1", None, "")
    return tell(
        desk,
        "fairbank.token/1",
        {**answer, "secret": None},
        f"{_sentence(answer)}; its secret is in {options.output}",
    )


def _tell(desk: Desk, answer: Row | None) -> int:
    """Show the secret, alone on stdout."""
    if answer is not None and desk.options.form is None:
        desk.note(f"{_sentence(answer)}. The secret is shown this once:")
    return tell(desk, "fairbank.token/1", answer, str(answer["secret"]) if answer else "")


def _sentence(answer: Row) -> str:
    return f"token {answer['id']} ({answer['label']}) is good until {answer['expires']}; to take it back: fairbank token revoke {answer['id']}"


@contextmanager
def _new_file(path: str) -> Iterator[TextIO]:
    """A file that only we can read, made before the token is, and gone again when that fails."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise Conflict(
            f"cannot make {path}: {error.strerror}",
            field="--output",
            remedy="name a new file in a folder of yours",
        ) from error
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            yield file
    except BaseException:
        os.unlink(path)
        raise


def _add_revoke(parser: Parser) -> None:
    parser.add_argument(
        "token", metavar="ID", type=number, help="its number in fairbank token list"
    )
    add_writing(parser, reason="none", keyed=False)


def _revoke(desk: Desk, options: Namespace) -> int:
    answer = post(
        desk, Posting("DELETE", f"/token/{options.token}", None, f"Revoke token {options.token}?")
    )
    return tell(
        desk,
        "fairbank.token/1",
        answer,
        f"token {options.token} is revoked; that is not undone, but a new one can be made",
    )


COMMAND = Noun(
    "tokens for signing in over the network",
    {
        "list": Command(
            "your tokens, without their secrets",
            ("fairbank token list", "fairbank token list -u ayla", "fairbank token list --json"),
            _add_list,
            _list,
        ),
        "create": Command(
            "make a token; its secret is shown once",
            (
                "fairbank token create laptop --output ~/.config/fairbank/token",
                "fairbank token create portal --scopes read,write --days 30",
                "fairbank token create darwin --scopes agent:darwin -u slurm",
            ),
            _add_create,
            _create,
        ),
        "revoke": Command(
            "make a token good for nothing, at once",
            (
                "fairbank token revoke 3",
                "fairbank token revoke 3 --yes",
                "fairbank token revoke 3 --dry-run",
            ),
            _add_revoke,
            _revoke,
        ),
    },
    usual="list",
)
