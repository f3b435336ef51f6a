"""Command `fairbank quote`: price of a job, and whether the project can pay. Nothing is posted."""

from __future__ import annotations

import os
import shlex
import sys
from fractions import Fraction
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
from fairbank.core.units import exact_decimal
from fairbank.report.cells import folded, padded, plain
from fairbank.report.columns import Column, DisplayFormat, Row, su, text
from fairbank.report.explanation import likely_start, start_range_data

if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from fairbank.cli.commands.bank.job_script import JobDescription
    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.slurm.explain.new_job import LikelyStart

SCRIPT_MAX = 4 * 1024 * 1024
_FITS = {True: "yes", False: "no", None: "unknown"}
_SETS = {True: "yes", False: "no", None: ""}
COLUMNS = (
    Column("PARTITION", text("partition")),
    Column("TRES", text("what")),
    Column("COUNT", text("count"), right=True),
    Column("WEIGHT", text("weight"), right=True),
    Column("BILLED", text("weighted"), right=True),
    Column("SETS", lambda row, form: _SETS[row.get("counts")]),
    # Facts of the whole job, the same in each row of a partition.
    Column("SU", su("amount"), right=True),
    Column("TASKS", text("tasks"), right=True),
    Column("TOTAL", su("total"), right=True),
    Column("AVAILABLE", su("available"), right=True),
    Column("FITS", lambda row, form: _FITS[row["fits"]]),
)


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
        card = context.client.post("/quote", request)["data"]
    except InvalidInput as error:
        if request["cluster"] is None and error.field == "cluster":
            find_cluster(context)  # raises it with the option instead of the field
        raise
    context.cluster = str(card["cluster"])
    start = _likely_start(context, options, request, card, job)
    code = TOO_LITTLE if not card["fits"] else NOT_DONE if unread else 0
    if options.form is None and not options.format:
        _show_quote(context, request, card, job, unread, start)
    else:
        card["likely_start"] = start and start_range_data(start.range)
        _list_quote(context, card, [] if options.tres else job.doubts, unread)
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


def _list_quote(context: Context, card: Row, doubts: list[str], unread: list[str]) -> None:
    """Print the lines of the bill in each partition as a list, with the facts of the whole job."""
    warnings = [*doubts, *card["notes"]]
    if card["reason"]:
        warnings.append(_verdict(card, context.format, unread))
    if unread:
        warnings.append(_not_priced(unread))
        for priced in (card, *card["partitions"]):
            priced["fits"] = None if priced["fits"] else False
    form = context.options.form
    if form != "json":  # there it is a field
        warnings += [_cheaper(change, context.format) for change in card["cheaper"]]
    quote = _without_lines(card)
    quote["partitions"] = [_without_lines(priced) for priced in card["partitions"]]
    rows = bill_rows(card)
    if form == "json":  # there the facts of the job stand once
        rows = [
            {"partition": priced["partition"], **line}
            for priced in card["partitions"]
            for line in priced["lines"]
        ]
    more = {"quote": quote, "not_read": sorted(set(unread))}
    show(context, Listing("fairbank.quote-line/1", COLUMNS, rows, warnings=warnings, more=more))
    if form in ("csv", "parsable"):  # these have no place for it
        context.note(*warnings)


def bill_rows(card: Row) -> list[Row]:
    """Return a row for each line of the bill in each partition, with the facts of the whole job.

    A partition that prices nothing of the job has one row, without a TRES, for these facts.
    """
    return [
        {**line, **_without_lines(priced), "tasks": card["tasks"]}
        for priced in card["partitions"]
        for line in priced["lines"] or [{}]
    ]


def _likely_start(
    context: Context, options: Namespace, request: Row, card: Row, job: JobDescription
) -> LikelyStart | None:
    """Return the likely start of a job that the bank accepts; None where Slurm does not tell it.

    Only a directory that was named must have all that is needed. Raises FairbankError.
    """
    if not options.likely or not card["fits"]:
        return None
    from fairbank.slurm.explain import new_job

    if options.directory is None and not new_job.has_slurm():
        return None
    user = context.one("/whoami")["user"]
    if user is None:  # the bank's host does not know them
        return None
    counts = {name: int(count) for name, count in parse_counts(request["tres"]).items()}
    # As many nodes as the bank finds that its CPUs and GRES need, in each of the partitions.
    counts["node"] = max(int(parse_counts(row["tres"])["node"]) for row in card["partitions"])
    described = new_job.NewJob(
        cluster=card["cluster"],
        account=card["account"],
        user=user,
        qos=request["qos"],
        partitions=tuple(priced["partition"] for priced in card["partitions"]),
        limit_seconds=card["seconds"],
        tres=counts,
        reservation=card["reservation"],
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


def _without_lines(card: Row) -> dict[str, Any]:
    return {key: value for key, value in card.items() if key != "lines"}


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
    card: Row,
    job: JobDescription,
    unread: list[str],
    start: LikelyStart | None,
) -> None:
    form, limit = context.format.for_sentences, show_duration(card["seconds"])
    number = card["allocation"]
    payer = f"{card['account']}/{card['resource']}"
    payer += ", which has no allocation now" if number is None else f", allocation {number}"
    words = request["tres"] if context.options.tres else _in_words(card["tres"])
    reserved = f" in reservation {card['reservation']}" if card["reservation"] else ""
    job_line = (
        f"{context.options.script or 'job'}: {card['cluster']}/{card['partition']}{reserved},"
        f" {words}, {limit}{_array(card)}  ->  {payer}"
    )
    context.print_lines(folded(caption(context), context.width))
    context.print_lines(folded(plain(job_line), context.width))
    for label, amount in _price(card):
        context.print_text(f"  {padded(label, 17)} {plain(amount)}")
    several = card["tasks"] > 1
    per_task = " for each task" if several else ""
    context.print_text(f"  {padded('hold at start', 18)}{form.su_text(card['amount'])}{per_task}")
    if several:
        context.print_text(
            f"  {padded('whole array', 18)}{card['tasks']:,} tasks, {form.su_text(card['total'])}"
        )
    if len(card["partitions"]) > 1:
        context.print_lines(
            folded(f"  {padded('in partitions', 18)}{_range(card, form)}", context.width)
        )
    after = f" -> {form.su(card['after'])}" if card["fits"] and not unread else ""
    left = form.with_unit(f"{form.su(card['available'])}{after}")
    available = f"{left}   {_verdict(card, form, unread)}"
    context.print_lines(folded(f"  {padded('available', 18)}{available}", context.width))
    if card["fits"]:
        context.print_text(
            f"  {padded('if it ends early', 18)}charged by the minute, the rest comes back"
        )
    if start is not None:
        start_range = likely_start(start.range, start.as_of, form)
        context.print_lines(folded(f"  {padded('likely start', 18)}{start_range}", context.width))
    context.note(*_advice(card, job, unread, form, tres=bool(context.options.tres)))


def _in_words(tres: str) -> str:
    """Return TRES as `1 node, 8 cores, 64 GiB, 2 gpu`."""
    counts = parse_counts(tres)
    nodes, cpus, memory = (counts.get(name, Fraction(0)) for name in ("node", "cpu", "mem"))
    words = [f"{nodes} node{'s' * (nodes > 1)}", f"{cpus} core{'s' * (cpus > 1)}"]
    words += [f"{exact_decimal(round(memory / 1024, 3))} GiB"] if memory else []
    for name, count in counts.items():
        by_type = [number for other, number in counts.items() if other.startswith(f"{name}:")]
        if "/" in name and sum(by_type) != count:  # `2 gpu` is not named beside `2 gpu:v100`
            words.append(f"{count} {name.removeprefix('gres/')}")
    return ", ".join(words)


def _range(card: Row, form: DisplayFormat) -> str:
    """Return the price of all tasks in each partition, and what that means."""
    several = len({priced["resource"] for priced in card["partitions"]}) > 1
    prices = ", ".join(
        f"{priced['partition']} {form.su_text(priced['total'])}"
        + (f" of {priced['resource']}" if several else "")
        for priced in card["partitions"]
    )
    return f"{prices}; held and charged in the one where it starts"


def _array(card: Row) -> str:
    return f", array of {card['tasks']:,} tasks" if card["tasks"] > 1 else ""


def _verdict(card: Row, form: DisplayFormat, unread: list[str]) -> str:
    if not card["reason"]:
        return "enough for what is priced" if unread else "fits"
    detail = form.sentence(card["detail"].removesuffix("."))
    return f"{detail}, and let through" if card["fits"] else f"does not fit: {detail}"


def _not_priced(unread: list[str]) -> str:
    return f"not priced: {describe_unread(unread)}; the price may be higher"


def _price(card: Row) -> list[tuple[str, str]]:
    """Return the lines of the bill: label and text."""
    some = not all(line["counts"] for line in card["lines"])
    lines = []
    for line in card["lines"]:
        name, count, weight = _in_gibibytes(line)
        sets = "   <- sets the price" if some and line["counts"] else ""
        lines.append((name, f"{count} x {weight} = {_short(Fraction(line['weighted']))}{sets}"))
    factor = Fraction(card["factor"])
    times = f" x {_short(factor)} (QOS)" if factor != 1 else ""
    return [*lines, ("billed per hour", f"{_short(Fraction(card['billing']))}{times} SU")]


def _in_gibibytes(line: Row) -> tuple[str, str, str]:
    count, weight = Fraction(line["count"]), Fraction(line["weight"])
    if line["what"] == "mem":
        return "mem, GiB", _short(count / 1024), _short(weight * 1024)
    return str(line["what"]), _short(count), _short(weight)


def _short(number: Fraction) -> str:
    """Return the number with at most six decimals, and commas between thousands."""
    whole, point, decimals = exact_decimal(round(number, 6)).partition(".")
    return f"{int(whole):,}{point}{decimals}"


_CHANGES = {
    "mem": "less memory, if it is enough: --mem={value}",
    "nodes": "fewer nodes, of the same size: {value}",
    "partition": "only one partition: -p {value}",
    "qos": "another QOS, if you may use it: -q {value}",
    "time_limit": "a shorter time limit: -t {value}",
}


def _cheaper(change: Row, form: DisplayFormat) -> str:
    """Return the change with the price of the job then."""
    value = shlex.quote(plain(change["value"]))
    return f"{_CHANGES[change['change']].format(value=value)} ({form.su_text(change['total'])})"


def _advice(
    card: Row, job: JobDescription, unread: list[str], form: DisplayFormat, *, tres: bool
) -> list[str]:
    lines = [f"  note: {doubt}" for doubt in ([] if tres else job.doubts) + card["notes"]]
    if not card["fits"]:
        lines += [f"  try: {with_user_names(remedy)}" for remedy in card["remedies"]]
    # The remedies have the shorter time limit.
    changes = [change for change in card["cheaper"] if change["change"] != "time_limit"]
    lines += [
        f"  {'cheaper' if card['fits'] else 'try'}: {_cheaper(change, form)}" for change in changes
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
