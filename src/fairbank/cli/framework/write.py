"""Requests that change the bank: dry run, confirmation, request, and report."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from fairbank.cli.framework.dry_run import readable_entries, show_planned_entries
from fairbank.cli.framework.exit_codes import NOT_DONE
from fairbank.core.errors import Unavailable
from fairbank.report.cells import plain
from fairbank.report.envelope import as_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.report.columns import Row


LARGE = 1_000_000 * 60
"""Amount in SU-minutes from which a command asks: `100M` is easily typed instead of `100k`."""


class WriteRequest(NamedTuple):
    """Request that changes the bank, and the question to ask before it, if any.

    Only a request that removes, ends or is large has a question. All others can be undone, and a
    question would take the next line of a pasted session as its answer.
    """

    method: str
    path: str
    body: Any
    question: str | None = None


def planned_entries(context: Context, request: WriteRequest) -> list[dict[str, Any]]:
    """Return the entries that the request would write, from the bank's dry run of it.

    Empty if the same was done before. Raises the bank's refusal.
    """
    said = getattr(context.options, "idempotency_key", None)
    answer = _send(context, request._replace(path=f"{request.path}?dry-run=true"), said, said)
    context.as_of = answer.get("as_of") or context.as_of
    return readable_entries(context, answer["data"])


def post(context: Context, request: WriteRequest) -> Row | None:
    """Send the request and return the answer; None for a dry run or without consent."""
    options = context.options
    if options.dry_run:
        show_planned_entries(context, planned_entries(context, request))
        return None
    if request.question is not None and not context.confirm(request.question):
        context.note("Nothing was changed.")
        return None
    said = getattr(options, "idempotency_key", None)
    key = said or f"cli-{os.urandom(12).hex()}"
    try:
        answer = _send(context, request, key, said)
    except Unavailable as silent:
        if hasattr(options, "idempotency_key") and request.method in (
            "POST",
            "PATCH",
        ):  # the others may be repeated anyway
            silent.remedy = (
                f"{silent.remedy}; to repeat it without doing it twice add: --idempotency-key {key}"
            )
        raise
    context.as_of = answer.get("as_of") or context.as_of
    found: Row = answer["data"]
    return found


def _send(
    context: Context, request: WriteRequest, key: str | None, said: str | None
) -> dict[str, Any]:
    client = context.client
    match request.method:
        case "POST":
            return client.post(request.path, request.body, key)
        case "PATCH":
            return client.patch(request.path, request.body, key)
        case "PUT":
            return client.put(request.path, request.body, said)
        case _:
            return client.delete(request.path, said)


def tell(
    context: Context, schema: str, answer: Row | None, sentence: str, warnings: Sequence[str] = ()
) -> int:
    """Print the result as a sentence or as the bank's answer. Return the exit code."""
    if answer is None:
        _warn(context, warnings)
        return 0 if context.options.dry_run else NOT_DONE
    warnings = [*warnings, *answer.get("warnings", ())]
    document: dict[str, Any] = {
        "schema": schema,
        "as_of": context.as_of,
        "cluster": context.cluster,
        "data": answer,
        "warnings": list(warnings),
    }
    match context.options.form:
        case "json":
            context.say(as_json(document))
        case _:
            context.say(plain(sentence))
            if answer.get("again"):
                context.note("This was carried out before; nothing more was done.")
            _warn(context, warnings)
    return 0


def _warn(context: Context, warnings: Sequence[str]) -> None:
    for line in warnings:
        context.note(line)


def numbered(answer: Row | None, sentence: str) -> str:
    """Return the sentence with the number of its entry, if one was written."""
    return f"entry {answer['entry']}: {sentence}" if answer and answer["entry"] else sentence


def moved(context: Context, answer: Row | None, what: str, *, of: str = "") -> str:
    """Return `entry 9913533: deposit of 400 SU into ...; available 662 SU`."""
    return (
        ""
        if answer is None
        else (
            f"entry {answer['entry']}: {what}; available {context.format.left(answer['available'])}"
            f" SU{of}"
        )
    )
