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
    from collections.abc import Callable, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.report.columns import Row


LARGE = 1_000_000 * 60
"""Amount in SU-minutes from which a command asks: `100M` is easily typed instead of `100k`."""


class WriteRequest(NamedTuple):
    """Request that changes the bank, and the question to ask before it, if any.

    Only a request that removes, ends or is large has a question. All others can be undone, and a
    question would take the next line of a pasted session as its answer. The value of --reason is
    added to the body.
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
    client, body = context.client, request.body
    if reason := getattr(context.options, "reason", None):
        body = {**body, "comment": reason}
    match request.method:
        case "POST":
            return client.post(request.path, body, key)
        case "PATCH":
            return client.patch(request.path, body, key)
        case "PUT":
            return client.put(request.path, body, said)
        case _:
            return client.delete(request.path, said)


def tell(
    context: Context,
    schema: str,
    answer: Row | None,
    sentence: str | Callable[[Row], str],
    warnings: Sequence[str] = (),
) -> int:
    """Print the result and return the exit code.

    Args:
        context: the command.
        schema: name of the schema of --json.
        answer: the bank's answer; None for a dry run or without consent.
        sentence: the result in words, after the number of its entry; or a function of the answer.
        warnings: notes to print after those of the answer.
    """
    if answer is None:
        _warn(context, warnings)
        return 0 if context.options.dry_run else NOT_DONE
    warnings = [*warnings, *answer.get("warnings", ())]
    if context.options.form == "json":
        document = {
            "schema": schema,
            "as_of": context.as_of,
            "cluster": context.cluster,
            "data": answer,
            "warnings": warnings,
        }
        context.say(as_json(document))
        return 0
    entry = f"entry {answer['entry']}: " if answer.get("entry") else ""
    context.say(plain(entry + (sentence if isinstance(sentence, str) else sentence(answer))))
    if answer.get("again"):
        context.note("This was carried out before; nothing more was done.")
    _warn(context, warnings)
    return 0


def write(
    context: Context,
    schema: str,
    request: WriteRequest,
    sentence: str | Callable[[Row], str],
    warnings: Sequence[str] = (),
) -> int:
    """Send the request and print the result, as `post` and `tell` do. Return the exit code."""
    return tell(context, schema, post(context, request), sentence, warnings)


def _warn(context: Context, warnings: Sequence[str]) -> None:
    for line in warnings:
        context.note(line)


def allocation_name(row: Row) -> str:
    """Return `allocation 1042 (chem_qmc/cpu)`."""
    return f"allocation {row['id']} ({row['account']}/{row['resource']})"
