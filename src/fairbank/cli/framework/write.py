"""Requests that change the bank: dry run, confirmation, request, and result."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from fairbank.cli.framework.exit_codes import NOT_DONE
from fairbank.cli.framework.host import with_user_names
from fairbank.cli.framework.output import Listing, caption_of, show
from fairbank.core.errors import Unavailable
from fairbank.core.time import show_duration
from fairbank.report.allocation_terms import terms_in_words
from fairbank.report.cells import plain
from fairbank.report.columns import Column, su, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.report.columns import Row

LARGE = 1_000_000 * 60
"""Amount in SU-minutes from which a command asks: `1000k` is easily typed instead of `100k`."""


class WriteRequest(NamedTuple):
    """Request that changes the bank, and the question to ask before it, if any.

    Only a request that removes, ends or is large has a question. All others can be undone, and a
    question would take the next line of a pasted session as its answer. One that removes or ends
    something `needs_yes` without a terminal. The value of --reason is added to the body. A
    request that is not `keyed` may be repeated without an idempotency key.
    """

    method: str
    path: str
    body: Any
    question: str | None = None
    needs_yes: bool = False
    keyed: bool = True


def planned_entries(
    context: Context, request: WriteRequest, *, in_words: bool = True
) -> list[dict[str, Any]]:
    """Return the entries that the request would write, from the bank's dry run of it.

    Empty if the same was done before. Raises the bank's refusal.

    Args:
        context: the command.
        in_words: the details are for people, else as the bank sent them.
    """
    return _readable_entries(context, dry_run(context, request), in_words=in_words)


def dry_run(context: Context, request: WriteRequest) -> list[Row]:
    """Return the entries that the request would write, as the bank sent them.

    Raises the bank's refusal, which the bank does not keep.
    """
    key = getattr(context.options, "idempotency_key", None)
    answer = _send(context, request._replace(path=f"{request.path}?dry-run=true"), key)
    rows: list[Row] = answer["data"]
    return rows


def post(context: Context, request: WriteRequest) -> Row | None:
    """Send the request and return the answer; None for a dry run or without consent."""
    options = context.options
    if options.dry_run:
        in_words = options.form != "json"
        _show_planned_entries(context, planned_entries(context, request, in_words=in_words))
        return None
    if request.question is not None and not context.confirm(
        request.question, needs_yes=request.needs_yes
    ):
        context.note("Nothing was changed.")
        return None
    key = getattr(options, "idempotency_key", None)
    # PUT and DELETE may be repeated anyway.
    once_only = request.keyed and request.method in ("POST", "PATCH")
    if once_only and key is None:
        key = f"cli-{os.urandom(12).hex()}"
    try:
        answer = _send(context, request, key)
    except Unavailable as silent:
        if once_only and hasattr(options, "idempotency_key"):
            silent.remedy = (
                f"{silent.remedy}; to repeat it without doing it twice add: --idempotency-key {key}"
            )
        raise
    row: Row = answer["data"]
    return row


def _send(context: Context, request: WriteRequest, key: str | None) -> dict[str, Any]:
    """Send the request with the value of --reason."""
    body, path = request.body, request.path
    if reason := getattr(context.options, "reason", None):
        if request.method == "DELETE":  # it has no body
            from urllib.parse import urlencode  # only this method needs it

            path += f"{'&' if '?' in path else '?'}{urlencode({'comment': reason})}"
        else:
            body = {**body, "comment": reason}
    send = getattr(context.client, request.method.lower())
    arguments = () if request.method == "DELETE" else (body,)
    answer: dict[str, Any] = send(path, *arguments, key)
    return answer


def show_result(
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
        if not context.options.dry_run:
            return NOT_DONE  # nothing has happened that they could be about
        context.note(*warnings)
        return 0
    warnings = [*warnings, *map(with_user_names, answer.get("warnings", ()))]
    if context.options.form == "json":
        context.print_json(schema, answer, warnings)
        return 0
    entry = f"entry {answer['entry']}: " if answer.get("entry") else ""
    text = sentence if isinstance(sentence, str) else sentence(answer)
    context.print_text(plain(entry + context.in_zone(text)))
    if answer.get("again"):
        context.note("This was carried out before; nothing more was done.")
    context.note(*warnings)
    return 0


def write(
    context: Context,
    schema: str,
    request: WriteRequest,
    sentence: str | Callable[[Row], str],
    warnings: Sequence[str] = (),
) -> int:
    """Send the request and print the result (`post`, `show_result`). Return the exit code.

    Args:
        context: the command, with its options --dry-run and --yes.
        schema: as of `show_result`.
        request: the request, and the question to confirm it.
        sentence: as of `show_result`.
        warnings: as of `show_result`.
    """
    return show_result(context, schema, post(context, request), sentence, warnings)


def allocation_name(row: Row) -> str:
    """Return `allocation 1042 (chem_qmc/cpu)`."""
    return f"allocation {row['id']} ({row['account']}/{row['resource']})"


# --- dry run ---


ENTRY_COLUMNS = (
    Column("KIND", text("kind")),
    Column("ALLOC", text("allocation"), right=True),
    Column("PROJECT", text("account")),
    Column("RESOURCE", text("resource"), drop=2),
    Column("AMOUNT", su("amount"), right=True),
    Column("REMAINING", su("remaining"), right=True),
    Column(
        "DETAILS",
        lambda row, form: ", ".join(f"{key} {value}" for key, value in row["details"].items()),
    ),
    Column("REASON", text("comment"), drop=1),
)


def _show_planned_entries(context: Context, entries: Sequence[Row]) -> None:
    """Print the entries, or that there are none."""
    if not entries and context.options.form is None:
        context.note("Nothing would be posted: this was carried out before, or is so already.")
        return
    form = context.format
    columns = [column for column in ENTRY_COLUMNS if any(column.cell(row, form) for row in entries)]
    heading = f"{caption_of(context, columns)}\nNothing is changed. This would be posted:"
    show(context, Listing("fairbank.planned-entry/1", columns, entries, heading, exact=True))


def _readable_entries(
    context: Context, planned: Iterable[Row], *, in_words: bool
) -> list[dict[str, Any]]:
    """Return the bank's entries with project and resource, and their details."""
    rows: list[dict[str, Any]] = []
    home: Row = {}
    for row in planned:
        moves = row["sign"] is not None
        new = row["allocation"] is None and moves  # into what the entry before opens
        home = home if new else _home(context, row)
        details = dict(row["details"] or {})
        if in_words:
            shown = {**row, **{name: _without_texts(row[name]) for name in ("details", "changed")}}
            job = {"job": row["job_id"], "cluster": row["cluster"], **_details(context, shown)}
            details = {key: value for key, value in job.items() if value is not None}
        rows.append(
            {
                **row,
                "account": home.get("account"),
                "resource": home.get("resource"),
                "amount": row["amount"] if moves else None,
                "details": details,
            }
        )
    return rows


def _without_texts(value: Any) -> Any:
    """Return fields without the texts of their amounts: the columns show them in another unit."""
    if not isinstance(value, dict):
        return value
    return {name: _without_texts(part) for name, part in value.items() if name != "display"}


def _home(context: Context, row: Row) -> Row:
    """Return the allocation or project that an entry belongs to."""
    details = row["details"] or {}
    match row["kind"]:
        case "member" | "open":
            account = context.one(f"/project/{details['project']}")["account"]
            resource = {"resource": details["resource"]} if row["kind"] == "open" else {}
            return {"account": account, **resource}
        case "project":
            return {"account": details["account"]}
        case _:
            return {} if row["allocation"] is None else context.one(f"/alloc/{row['allocation']}")


def _details(context: Context, row: Row) -> dict[str, object]:
    """Return the details that no column shows."""
    details = dict(row["details"] or {})
    match row["kind"]:
        case "open":
            terms = {**details, "credit_limit": row["credit_limit"]}
            names = (
                "category",
                "start",
                "end",
                "shared",
                "credit_limit",
                "partition",
                "reservation",
            )
            given = {name: terms[name] for name in names if terms.get(name)}
            return dict(terms_in_words(given, context.format))
        case "terms":
            words = terms_in_words(row["changed"], context.format)
            return {**words, "undoes": details.get("undoes")}
        case "cap":
            cap = details["cap"]
            return {
                **details,
                "uid": row["owner_uid"],
                "cap": "none" if cap is None else context.format.su_text(cap),
            }
        case "member":
            return {**details, "role": details["role"] or "none"}
        case "token":
            times = {
                key: context.format.moment(details[key])
                for key in ("expires", "revoked")
                if details[key] is not None
            }
            return {**details, "scopes": ",".join(details["scopes"]), "created": None, **times}
        case "hold" | "charge" | "release":
            return _run_details(context, details)
        case _:
            return details


def _run_details(context: Context, details: Mapping[str, Any]) -> dict[str, object]:
    """Return the details of an entry of a run in words, without its key."""
    form = context.format
    formats: Mapping[str, Callable[[Any], str]] = {
        "start": form.moment,
        "until": form.moment,
        "ended": form.moment,
        "elapsed_seconds": show_duration,
        "written_off": form.su_text,
        "occupied": form.su_text,
    }
    job = details.get("job_details") or {}
    return {
        key.removesuffix("_seconds").replace("_", " "): formats.get(key, str)(value)
        for key, value in {**details, **job}.items()
        if key not in ("run", "project", "job_details") and value not in (None, 0)
    }
