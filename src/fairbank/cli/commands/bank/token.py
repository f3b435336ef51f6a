"""Command `fairbank token`: tokens for authentication over the network.

A secret is shown once. `fairbank undo` does not apply: revoke a token instead, which is final.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fairbank.cli.framework.command import Command, Noun
from fairbank.cli.framework.host import uid_of, user_name
from fairbank.cli.framework.options import add_option, add_writing, at_least_one, number
from fairbank.cli.framework.output import Listing, caption, show
from fairbank.cli.framework.write import WriteRequest, post, show_result, write
from fairbank.core.errors import Conflict
from fairbank.report.columns import Column, moment, text

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import TextIO

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.columns import Row

COLUMNS = (
    Column("ID", text("id"), right=True),
    Column("LABEL", text("label")),
    Column("USER", text("user"), drop=1),
    Column("SCOPES", lambda row, form: ",".join(row["scopes"])),
    Column("CREATED", moment("created"), drop=3),
    Column("EXPIRES", moment("expires")),
    Column("REVOKED", moment("revoked"), drop=2),
    Column("MADE-BY", text("parent"), right=True, drop=4),
)
DAYS = 90


def _add_list(parser: Parser) -> None:
    add_option(parser, "-u, --user USER", "another user's, by name or number; for staff")


def _list(context: Context, options: Namespace) -> int:
    uid = None if options.user is None else uid_of(options.user)
    rows = [{**row, "user": user_name(row["uid"])} for row in context.rows("/token", {"uid": uid})]
    heading = caption(context, unit=False)
    empty = "There is no token."
    return show(context, Listing("fairbank.token/1", COLUMNS, rows, heading, empty=empty))


def _add_create(parser: Parser) -> None:
    add_option(parser, "label LABEL", "what it is for")
    about = "read, write, agent:CLUSTER (default: read)"
    add_option(parser, "--scopes SCOPE,...", about, default="read")
    about = f"how long it is good (default: {DAYS})"
    add_option(parser, "--days N", about, type=at_least_one, default=DAYS)
    add_option(parser, "-u, --user USER", "whose it is to be; for staff")
    about = "write the secret to a new file that only you can read, instead of showing it"
    add_option(parser, "--output FILE", about)
    add_writing(parser, reason="none", keyed=False)


def _create(context: Context, options: Namespace) -> int:
    scopes = [scope for scope in options.scopes.replace(",", " ").split() if scope]
    body = {"label": options.label, "scopes": scopes, "days": options.days}
    if options.user is not None:
        body["uid"] = uid_of(options.user)
    request = WriteRequest("POST", "/token", body)
    if options.output is None:
        answer = post(context, request)
        if answer is not None and options.form is None:
            # The secret stands alone on stdout.
            context.name_bank()
            context.note(f"{_sentence(answer)}. The secret is shown this once:")
        return show_result(
            context, "fairbank.token/1", answer, lambda answer: str(answer["secret"])
        )
    with _new_file(options.output) as file:
        answer = post(context, request)
        if answer is not None:
            file.write(answer["secret"] + "\n")
    if answer is None:
        os.unlink(options.output)
    else:
        answer = {**answer, "secret": None}
    return show_result(
        context,
        "fairbank.token/1",
        answer,
        lambda answer: f"{_sentence(answer)}; its secret is in {options.output}",
    )


def _sentence(answer: Row) -> str:
    return (
        f"token {answer['id']} ({answer['label']}) is good until {answer['expires']}; to take it"
        f" back: fairbank token revoke {answer['id']}"
    )


@contextmanager
def _new_file(path: str) -> Iterator[TextIO]:
    """Create a file that only the user can read before the token; delete it on failure."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise Conflict(
            f"cannot make {path}: {error.strerror}",
            field="--output",
            remedy="name a new file in a directory of yours",
        ) from error
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            yield file
    except BaseException:
        os.unlink(path)
        raise


def _add_revoke(parser: Parser) -> None:
    add_option(parser, "token ID", "its number in fairbank token list", type=number)
    add_writing(parser, reason="none", keyed=False)


def _revoke(context: Context, options: Namespace) -> int:
    path, question = f"/token/{options.token}", f"Revoke token {options.token}?"
    sentence = f"token {options.token} is revoked; that is not undone, but a new one can be made"
    request = WriteRequest("DELETE", path, None, question, needs_yes=True)
    return write(context, "fairbank.token/1", request, sentence)


COMMAND = Noun(
    "tokens for signing in over the network",
    {
        "list": Command(
            "list your tokens, without their secrets",
            ("{}", "{} -u ayla", "{} --json"),
            _add_list,
            _list,
            columns=COLUMNS,
        ),
        "create": Command(
            "create a token; its secret is shown once",
            (
                "{} laptop --output ~/.config/fairbank/token",
                "{} portal --scopes read,write --days 30",
                "{} darwin --scopes agent:darwin -u slurm",
            ),
            _add_create,
            _create,
        ),
        "revoke": Command(
            "revoke a token at once", ("{} 3", "{} 3 --yes", "{} 3 --dry-run"), _add_revoke, _revoke
        ),
    },
    default="list",
)
