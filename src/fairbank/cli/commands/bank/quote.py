"""Command `fairbank quote`: price of a job, and whether the project can pay. Nothing is posted."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING

from fairbank.cli.commands.bank.job_script import (
    add_job_options,
    describe_job,
    describe_unread,
    read_script,
)
from fairbank.cli.commands.slurm.slurm_options import add_directory
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.exit_codes import NOT_DONE, TOO_LITTLE
from fairbank.cli.framework.host import with_user_names
from fairbank.cli.framework.options import add_option
from fairbank.cli.framework.output import Listing, caption, show
from fairbank.cli.framework.progress import Stages, add_progress
from fairbank.cli.framework.selectors import find_cluster
from fairbank.core.errors import FairbankError, InvalidInput, NotFound
from fairbank.core.submission.options import options_by_flag
from fairbank.core.time import parse_limit, show_duration
from fairbank.core.tres import parse_counts
from fairbank.report.cells import folded, padded, plain
from fairbank.report.columns import DisplayFormat, Row
from fairbank.report.explanation import likely_start, start_range_data
from fairbank.report.quote import (
    COLUMNS,
    array_text,
    bill_lines,
    bill_rows,
    cheaper_text,
    price_range,
    tres_in_words,
    verdict,
    without_lines,
)

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.commands.bank.job_script import JobDescription
    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.slurm.explain.new_job import LikelyStart

SCRIPT_MAX = 4 * 1024 * 1024


def add(parser: Parser) -> None:
    about = (
        "a batch script with #SBATCH lines; - is standard input; exit code 1 when it asks for more"
        " than is priced"
    )
    add_option(parser, "script JOBFILE", about, nargs="?")
    add_job_options(parser)
    add_option(parser, "--tres TRES", "instead of counts: cpu=8,mem=16G,gres/gpu=1")
    add_directory(parser)
    about = "do not estimate the start from Slurm's queue"
    add_option(parser, "--no-likely", about, dest="likely", action="store_false")
    add_progress(parser)


def run(context: Context, options: Namespace) -> int:
    unread = _take_in_script(options)
    if options.tres:
        unread = []  # then it is said what the job holds
    job = describe_job(options)
    request = {
        "account": _account(context, options),
        "cluster": _cluster(context, options),
        "partition": options.partition,
        "reservation": options.reservation,
        **_resources(options, job),
        "time_limit": parse_limit(_needed(options.time, "--time", "-t 12:00:00"), field="--time"),
        "qos": options.qos,
        "tasks": job.array_tasks,
    }
    try:
        quote = context.client.post("/quote", request)["data"]
    except InvalidInput as error:
        if request["cluster"] is None and error.field == "cluster":
            find_cluster(context)  # raises it with the option instead of the field
        raise
    context.cluster = str(quote["cluster"])
    start = _likely_start(context, options, request, quote, job)
    code = TOO_LITTLE if not quote["fits"] else NOT_DONE if unread else 0
    if options.form is None and not options.format:
        _show_quote(context, request, quote, job, unread, start)
    else:
        quote["likely_start"] = start and start_range_data(start.range)
        _list_quote(context, quote, [] if options.tres else job.doubts, unread)
    return code


def _resources(options: Namespace, job: JobDescription) -> dict[str, object]:
    """Return what the job requests, or holds if --tres says so, as fields of the request."""
    if options.tres:
        return {"tres": options.tres}
    return {
        "tres": job.tres,
        "node_requests": job.node_requests,
        "max_nodes": job.max_nodes,
        "exclusive": job.layout.exclusive,
        **job.layout.memory,
    }


def _list_quote(context: Context, quote: Row, doubts: list[str], unread: list[str]) -> None:
    """Print the lines of the bill in each partition as a list, with the facts of the whole job."""
    warnings = [*doubts, *quote["notes"]]
    if quote["reason"]:
        warnings.append(verdict(quote, context.format, unread))
    if unread:
        warnings.append(_not_priced(unread))
        for priced in (quote, *quote["partitions"]):
            priced["fits"] = None if priced["fits"] else False
    form = context.options.form
    if form != "json":  # there it is a field
        warnings += [cheaper_text(change, context.format) for change in quote["cheaper"]]
    rows = bill_rows(quote)
    if form == "json":  # there the facts of the job stand once
        rows = [
            {"partition": priced["partition"], **line}
            for priced in quote["partitions"]
            for line in priced["lines"]
        ]
    facts = without_lines(quote)
    facts["partitions"] = [without_lines(priced) for priced in quote["partitions"]]
    more = {"quote": facts, "not_read": sorted(set(unread))}
    show(context, Listing("fairbank.quote-line/1", COLUMNS, rows, warnings=warnings, more=more))
    if form in ("csv", "parsable"):  # these have no place for it
        context.note(*warnings)


def _likely_start(
    context: Context, options: Namespace, request: Row, quote: Row, job: JobDescription
) -> LikelyStart | None:
    """Return the likely start of a job that the bank accepts; None where Slurm does not tell it.

    Only a directory that was named must have all that is needed. Raises FairbankError.
    """
    if not options.likely or not quote["fits"]:
        return None
    from fairbank.slurm.explain import new_job

    if options.directory is None and not new_job.has_slurm():
        return None
    user = context.one("/whoami")["user"]
    if user is None:  # the bank's host does not know them
        return None
    counts = {name: int(count) for name, count in parse_counts(request["tres"]).items()}
    # As many nodes as the bank finds that its CPUs and GRES need, in each of the partitions.
    counts["node"] = max(int(parse_counts(row["tres"])["node"]) for row in quote["partitions"])
    described = new_job.NewJob(
        cluster=quote["cluster"],
        account=quote["account"],
        user=user,
        qos=request["qos"],
        partitions=tuple(priced["partition"] for priced in quote["partitions"]),
        limit_seconds=quote["seconds"],
        tres=counts,
        reservation=quote["reservation"],
    )
    if not options.tres:
        described = described._replace(layout=job.layout)
    try:
        with Stages(options) as progress:
            tick = partial(progress, "simulated runs")
            start = new_job.likely_start(described, options.directory, context.zone, tick)
    except FairbankError:
        if options.directory is not None:
            raise
        return None
    context.note(*(f"! not read: {line}" for line in (start.unreadable if start else ())))
    return start


def _take_in_script(options: Namespace) -> list[str]:
    """Fill missing options from the script. Return the options that are ignored."""
    if options.script is None:
        return []
    from_script, unread = read_script(_script(options.script))
    for name, value in vars(from_script).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    return unread


def _script(path: str) -> list[str]:
    try:
        script = _text(path)
    except OSError as error:
        raise NotFound(
            f"cannot read {path}: {error.strerror}", field="JOBFILE", remedy="name a batch script"
        ) from error
    if "\0" in script or not script.startswith("#!"):
        why = "a binary file" if "\0" in script else "without #! in its first line"
        why = why if script.strip() else "empty"
        raise InvalidInput(
            f"{plain(path)} is not a batch script: it is {why}",
            field="JOBFILE",
            remedy="name a text file that begins with #!",
        )
    return script.splitlines()


def _text(path: str) -> str:
    if path != "-":
        with open(path, "rb") as file:
            return file.read(SCRIPT_MAX).decode("utf-8", "replace")
    try:
        return sys.stdin.read(SCRIPT_MAX)
    except UnicodeDecodeError:
        return "\0"  # no text either


def _needed(value: str | None, field: str, example: str) -> str:
    if value:
        return value
    raise InvalidInput(
        f"the option {field} is missing: without it the job has no price",
        field=field,
        remedy=f"add {example}, or name a script with an #SBATCH line that has it",
    )


def _account(context: Context, options: Namespace) -> str:
    """Return the paying project: the option, else sbatch's variables, else the only project."""
    option = options_by_flag("sbatch")["--account"]
    variables = [*option.variable_names("sbatch"), *option.variable_names("srun")]
    typed = [options.account, *map(os.environ.get, variables), context.settings.account]
    account = next(filter(None, typed), None)
    if account:
        return str(account)
    mine = [str(row["account"]) for row in context.rows("/project")]
    if len(mine) == 1:
        return mine[0]
    there = f"your projects are {', '.join(mine[:8])}" if mine else "you are in no project"
    raise InvalidInput(
        f"the option --account is missing: {plain(there)}",
        field="--account",
        remedy="name the project that pays: -A PROJECT",
    )


def _cluster(context: Context, options: Namespace) -> str | None:
    """Return the cluster of a recorded queue, else one that was named; the bank takes its only
    cluster otherwise.

    Raises InvalidInput if another one than that of the queue was named.
    """
    if options.directory is not None:
        from fairbank.slurm.output import RecordedOutput, cluster_differs, cluster_missing

        cluster = RecordedOutput(options.directory).cluster
        if not cluster:
            raise cluster_missing(options.directory)
        if options.cluster not in (None, cluster):
            raise cluster_differs(cluster, options.cluster)
        return cluster
    return options.cluster or os.environ.get("SLURM_CLUSTER_NAME") or context.settings.cluster


def _show_quote(
    context: Context,
    request: Row,
    quote: Row,
    job: JobDescription,
    unread: list[str],
    start: LikelyStart | None,
) -> None:
    form, limit = context.format.for_sentences, show_duration(quote["seconds"])
    number = quote["allocation"]
    payer = f"{quote['account']}/{quote['resource']}"
    payer += ", which has no allocation now" if number is None else f", allocation {number}"
    words = request["tres"] if context.options.tres else tres_in_words(quote["tres"])
    reserved = f" in reservation {quote['reservation']}" if quote["reservation"] else ""
    job_line = (
        f"{context.options.script or 'job'}: {quote['cluster']}/{quote['partition']}{reserved},"
        f" {words}, {limit}{array_text(quote)}  ->  {payer}"
    )
    context.print_lines(folded(caption(context), context.width))
    context.print_lines(folded(plain(job_line), context.width))
    for label, amount in bill_lines(quote):
        context.print_text(f"  {padded(label, 17)} {plain(amount)}")
    several = quote["tasks"] > 1
    per_task = " for each task" if several else ""
    context.print_text(f"  {padded('hold at start', 18)}{form.su_text(quote['amount'])}{per_task}")
    if several:
        context.print_text(
            f"  {padded('whole array', 18)}{quote['tasks']:,} tasks, {form.su_text(quote['total'])}"
        )
    if len(quote["partitions"]) > 1:
        context.print_lines(
            folded(f"  {padded('in partitions', 18)}{price_range(quote, form)}", context.width)
        )
    after = f" -> {form.su(quote['after'])}" if quote["fits"] and not unread else ""
    left = form.with_unit(f"{form.su(quote['available'])}{after}")
    available = f"{left}   {verdict(quote, form, unread)}"
    context.print_lines(folded(f"  {padded('available', 18)}{available}", context.width))
    if quote["fits"]:
        context.print_text(
            f"  {padded('if it ends early', 18)}charged by the minute, the rest comes back"
        )
    if start is not None:
        start_range = likely_start(start.range, start.as_of, form)
        context.print_lines(folded(f"  {padded('likely start', 18)}{start_range}", context.width))
    context.note(*_advice(quote, job, unread, form, tres=bool(context.options.tres)))


def _not_priced(unread: list[str]) -> str:
    return f"not priced: {describe_unread(unread)}; the price may be higher"


def _advice(
    quote: Row, job: JobDescription, unread: list[str], form: DisplayFormat, *, tres: bool
) -> list[str]:
    lines = [f"  note: {doubt}" for doubt in ([] if tres else job.doubts) + quote["notes"]]
    if not quote["fits"]:
        lines += [f"  try: {with_user_names(remedy)}" for remedy in quote["remedies"]]
    # The remedies have the shorter time limit.
    changes = [change for change in quote["cheaper"] if change["change"] != "time_limit"]
    lines += [
        f"  {'cheaper' if quote['fits'] else 'try'}: {cheaper_text(change, form)}"
        for change in changes
    ]
    if unread:
        lines.append(f"  {_not_priced(unread)}")
    return lines


COMMAND = Command(
    "show the price of a job, and whether it fits; exit code 5 if it does not",
    (
        "{} job.sh",
        "{} -A chem_qmc -p standard -c 8 --mem 64G -t 12:00:00",
        "{} job.sh -t 4:00:00 --json",
    ),
    add,
    run,
    columns=COLUMNS,
)
