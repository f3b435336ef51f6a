"""Checks of what was typed about a run that no agent reports: errors and warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairbank.cli.framework.host import user_name
from fairbank.cli.framework.selectors import find_project, not_visible
from fairbank.cli.framework.write import WriteRequest, dry_run
from fairbank.core.errors import FairbankError, InvalidInput
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.report.columns import Row


def check_options(
    context: Context, options: Namespace, cluster: Row, report: dict[str, Any]
) -> None:
    """Check the options that name a project, a partition, a QOS or a time.

    The bank would keep a refusal of the report, as for a scheduler's job, which ran. What is typed
    is tried first, so that a typing error leaves nothing.

    Args:
        context: the command, which sends the requests.
        options: values of the options.
        cluster: the cluster, as the bank has it.
        report: the report of the run, with the times that the options mean.

    Raises:
        FairbankError: a value is wrong; the error names the option.
    """
    if options.qos is not None:
        from fairbank.bank.pricing import known_qos

        known_qos(options.qos, cluster["qos_factors"], cluster["qos_resources"], field="--qos")
    partitions = [str(row["name"]) for row in cluster["partitions"]]
    if options.partition is not None and options.partition not in partitions:
        remedy = "have it added to the bank's settings"
        raise not_visible("partition", options.partition, "--partition", partitions, remedy)
    times = {
        "--submitted": (options.submitted, report["submitted"]),
        "--starttime": (options.starttime, report["start"]),
        "--endtime": (getattr(options, "endtime", None), report.get("end")),
    }
    typed = {name: (text, int(at)) for name, (text, at) in times.items() if text is not None}
    if not typed and options.account is None:
        return
    from fairbank.cluster.run_report import CLOCK_STEP_SECONDS
    from fairbank.rest.client import Refused

    if "--submitted" in typed and typed["--submitted"][1] > report["start"] + CLOCK_STEP_SECONDS:
        raise InvalidInput(
            f"{options.submitted!r} is after the start of the run",
            field="--submitted",
            remedy="a job is submitted before it starts, or then",
        )
    # Without --endtime the run ends now: it does not start later.
    is_early = report.get("end", report["start"]) < report["start"]
    if is_early and "--starttime" in typed and "--endtime" not in typed:
        raise _in_future(options.starttime, "--starttime")
    try:
        dry_run(context, WriteRequest("POST", "/job", report, keyed=False))
    except Refused as refusal:
        if refusal.refusal.get("reason") == "TIMESTAMP_IN_FUTURE" and typed:
            name, (text, _) = max(typed.items(), key=lambda item: item[1][1])
            raise _in_future(text, name) from refusal
        if refusal.refusal.get("project") is None:  # of no project
            find_project(context, report["account"], "--account")


def _in_future(text: str, option: str) -> InvalidInput:
    return InvalidInput(
        f"{text!r} is in the future",
        field=option,
        remedy="a time that has passed, such as 2026-11-21T16:00 or now-2hours",
    )


def membership_warnings(context: Context, report: dict[str, Any]) -> list[str]:
    """Return a warning if the owner is no member of the project: the name may be a typing error.

    An agent may report runs of projects that it may not see.
    """
    account, owner = report["account"], report["owner_uid"]
    try:
        project = context.one(f"/project/{find_project(context, account, '--account')['id']}")
    except FairbankError:  # the report is refused, with the reason
        return []
    if any(member["uid"] == owner for member in project["members"]):
        return []
    from shlex import join  # 1 ms, only for this warning

    user, account = plain(user_name(owner)), plain(account)
    return [
        f"user {user} is not a member of {account}; if the user is right, add them:"
        f" {join(['fairbank', 'project', 'add-user', account, user])}"
    ]


def amount_warnings(
    context: Context, owner: int, amount: int, run: Row | None, entries: Sequence[Row]
) -> list[str]:
    """Return warnings about a price that follows from what was typed and is more than the run
    holds, or than its user may still use: it is likely to be in another unit, or of another job.

    Args:
        context: the command.
        owner: who ran the job.
        amount: its price.
        run: the run, if the bank has it.
        entries: what the bank would write; empty if nothing was typed.
    """
    if not entries:
        return []
    form = context.format.for_sentences
    su = form.su_text
    held = run["held"] if run is not None and run["state"] == "held" else 0
    warnings = []
    if held and amount > held:
        warnings.append(f"! the job holds {su(held)}, {su(amount - held)} less")
    number = entries[0]["allocation"]
    users = [] if number is None else context.rows(f"/alloc/{number}/user")
    for user in users:
        if user["uid"] == owner and user["cap"] is not None:
            free = max(0, user["cap"] - user["charged"] - (user["held"] - held))
            if amount > free:
                warnings.append(
                    f"! the cap of {user_name(owner)} in allocation {number} leaves"
                    f" {form.su_text(free)}, {form.with_unit(form.lacking(amount, free))} less"
                )
    return warnings
