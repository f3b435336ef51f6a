"""Command `fairbank shadow`: charges and refusals of Slurm's jobs without enforcement."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from fairbank.cli.commands.slurm.slurm_options import period_of, slurm_and_bank
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.options import add_clusters, add_option, add_period
from fairbank.cli.framework.output import Listing, caption, show
from fairbank.cli.framework.progress import Stages, add_progress
from fairbank.core.errors import InvalidInput
from fairbank.report.columns import Column, moment, su, text

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence
    from typing import Any

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.columns import Row
    from fairbank.slurm.reconcile.shadow import ShadowAccount, ShadowRefusal, ShadowResult
    from fairbank.slurm.shadow_rules import RuleCount

DEFAULT_START = "now-7days"

COLUMNS = (
    Column("PROJECT", text("account")),
    Column("RESOURCE", text("resource")),
    Column("JOBS", text("jobs"), right=True),
    Column("SU", su("charged"), right=True),
    Column("HELD", su("held"), right=True, drop=1),
    Column("REFUSED", text("refused"), right=True),
    Column("REQUEST", su("refused_requested"), right=True, drop=2),
    Column("REMAINING", su("left"), right=True),
)
REFUSED_COLUMNS = (
    Column("JOBID", text("job_id"), right=True),
    Column("PROJECT", text("account")),
    Column("USER", text("user")),
    Column("STARTED", moment("start"), drop=1),
    Column("REQUEST", su("requested"), right=True),
    Column("AVAILABLE", su("available"), right=True),
    Column("WHY", text("why"), min_width=20),
    Column("PARTITION", text("partition"), extra=True),
)

RULE_COLUMNS = (
    Column("RULE", text("rule"), min_width=30),
    Column("JOBS", text("jobs"), right=True),
    Column("OF", text("of"), right=True),
    Column("COUNT", text("count"), drop=2),
    Column("ACTION", text("action")),
    Column("SETTING", text("setting"), drop=1),
)


def add(parser: Parser) -> None:
    add_period(parser, DEFAULT_START)
    add_clusters(parser, "required name of this Slurm cluster (default: any)")
    what = parser.add_mutually_exclusive_group()
    add_option(what, "--refused", "each job that would have been refused, and why")
    about = "how many of the period's submissions break each rule of the submission policy"
    add_option(what, "--rules", about)
    about = "with --rules: the site's rules (default: /etc/fairbank/slurm.toml)"
    add_option(parser, "--site FILE", about)
    add_progress(parser)


def run(context: Context, options: Namespace) -> int:
    if options.rules:
        return _show_rules(context, options)
    if options.site is not None:
        raise InvalidInput(
            "--site does nothing by itself",
            field="--site",
            remedy="fairbank shadow --rules --site FILE",
        )
    from fairbank.slurm.reconcile.reconciler import read_jobs, read_runs
    from fairbank.slurm.reconcile.shadow import ShadowInput, simulate, with_partition_limits

    since, until = period_of(context, DEFAULT_START)
    slurm, bank = slurm_and_bank(context)
    with Stages(options) as progress:
        cluster = bank.cluster(slurm.check_cluster(context.settings.cluster))
        context.cluster = cluster.name
        jobs, unreadable = read_jobs(slurm, since, until, progress)
        first = min((job.start for job in jobs if job.start is not None), default=since)
        runs = read_runs(bank, cluster.name, min(first, since), until, progress, len(jobs))
    partitions = slurm.partitions()
    result = simulate(
        with_partition_limits(jobs, partitions),
        ShadowInput(
            cluster=cluster,
            projects=bank.projects(),
            allocations=bank.allocations(),
            now=context.now(),
            runs=runs,
        ),
    )
    unreadable += (*partitions.unreadable, *result.unreadable)
    context.note(*(f"! not read: {line}" for line in unreadable))
    facts: dict[str, Any] = {
        "caption": f"{caption(context)}   nothing is posted",
        "notes": _reasons(result),
        "more": {"unreadable": list(map(str, unreadable))},
    }
    show(context, _listing(result, facts, refused=options.refused))
    return 0


def _listing(result: ShadowResult, facts: Mapping[str, Any], *, refused: bool) -> Listing:
    """Return the refused jobs, or the projects, as a table with these facts beside it."""
    if refused:
        rows, empty = list(map(_refused, result.refused)), "No job would have been refused."
        return Listing("fairbank.shadow-refused/1", REFUSED_COLUMNS, rows, empty=empty, **facts)
    rows, empty = list(map(_row, result.rows)), "No job ran in that time."
    return Listing("fairbank.shadow/1", COLUMNS, rows, empty=empty, **facts)


def _show_rules(context: Context, options: Namespace) -> int:
    """Print how many submissions of the period break each rule."""
    from fairbank.slurm.policy import read_site_rules
    from fairbank.slurm.reconcile.reconciler import read_job_groups, read_jobs
    from fairbank.slurm.reconcile.shadow import with_partition_limits
    from fairbank.slurm.shadow_rules import RuleInput, count_by_rule, exempt_note, rule_gaps

    site = read_site_rules(options.site)
    since, until = period_of(context, DEFAULT_START)
    slurm, bank = slurm_and_bank(context)
    with Stages(options) as progress:
        cluster = bank.cluster(slurm.check_cluster(context.settings.cluster))
        context.cluster = cluster.name
        jobs, unreadable = read_jobs(slurm, since, until, progress)
        groups = read_job_groups(slurm, since, until, progress)
    world = RuleInput(
        site=site,
        cluster=cluster,
        projects=bank.projects(),
        partitions=slurm.partitions(),
        groups={row.job_id: row.gid for row in groups.rows},
        nodes=slurm.nodes(),
    )
    limited = with_partition_limits(jobs, world.partitions)
    submitted = [job for job in limited if job.submitted >= since]
    for answer in (groups, world.partitions, world.nodes):
        unreadable += answer.unreadable
    unreadable += rule_gaps(submitted)
    context.note(*(f"! not read: {line}" for line in unreadable))
    notes = [f"not counted, as a line was not read: {rule.value}" for rule in world.unjudged]
    notes += [note] if (note := exempt_note(submitted, site)) else []
    show(
        context,
        Listing(
            "fairbank.shadow-rules/1",
            RULE_COLUMNS,
            list(map(_rule, count_by_rule(submitted, world))),
            f"{caption(context)}   submissions that break each rule",
            notes=notes,
            empty="There are no rules.",
            more={"unreadable": list(map(str, unreadable))},
        ),
    )
    return 0


def _rule(count: RuleCount) -> Row:
    from fairbank.slurm.shadow_rules import KNOWN, SETTINGS

    return {
        "rule": count.rule.value,
        "jobs": count.jobs,
        "of": count.of,
        "count": KNOWN.get(count.rule, "exact"),
        "action": count.action.value,
        "setting": SETTINGS[count.rule],
    }


def _reasons(seen: ShadowResult) -> Sequence[str]:
    """Return a sentence with the number of refusals for each reason."""
    counts = Counter(refusal.reason.value for refusal in seen.refused)
    return [f"{count:,} would have been refused: {reason}" for reason, count in counts.items()]


def _row(row: ShadowAccount) -> Row:
    names = "account resource jobs charged held refused refused_requested left"
    return {name: getattr(row, name) for name in names.split()}


def _refused(refusal: ShadowRefusal) -> Row:
    job = refusal.job
    return {
        "job_id": job.job_id,
        "account": job.account,
        "user": job.user,
        "partition": job.partition,
        "submitted": job.submitted,
        "start": job.start,
        "requested": refusal.requested,
        "available": refusal.available,
        "reason": refusal.reason.name,
        "why": refusal.reason.value,
    }


def _columns(options: Namespace) -> Sequence[Column]:
    if options.rules:
        return RULE_COLUMNS
    return REFUSED_COLUMNS if options.refused else COLUMNS


COMMAND = Command(
    "show what would have been charged and refused",
    (
        "{}                          by project, the last seven days",
        "{} --refused -S now-1day    each job that would have been refused",
        "{} --rules -S now-30days    submissions that each rule would have refused",
    ),
    add,
    run,
    watch=True,
    columns=_columns,
)
