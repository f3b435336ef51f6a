"""Command `fairbank import`: finished jobs of any scheduler from a CSV file."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from fairbank.cli.commands.admin.csv_options import add_table, file_columns, read_csv
from fairbank.cli.commands.admin.import_result import (
    COVER_ABOUT,
    exceeds_credit,
    of_resources,
    price_text,
    runs_without_owner,
    show_history,
)
from fairbank.cli.framework.command import Command, Noun
from fairbank.cli.framework.exit_codes import FOUND, NOT_DONE
from fairbank.cli.framework.options import add_clusters, add_option, add_writing
from fairbank.cli.framework.progress import Stages, add_progress
from fairbank.cli.framework.selectors import find_cluster
from fairbank.core.units import counted
from fairbank.report.columns import Column

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.bank.records import BankCluster
    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.csv_import.jobs import JobFileRules


def _add_csv(parser: Parser) -> None:
    add_table(parser)
    add_clusters(parser, "the cluster of the jobs, of the bank's settings (default: the only one)")
    add_option(parser, "--cover", COVER_ABOUT)
    add_writing(parser, reason="none", keyed=False)
    add_progress(parser)


def _csv_columns(_: Namespace) -> list[Column]:
    from fairbank.csv_import.jobs import JOB_FIELDS

    return file_columns(JOB_FIELDS)


def _csv(context: Context, options: Namespace) -> int:
    from fairbank.csv_import.jobs import JOB_FIELDS, parse_job_table
    from fairbank.rest.client.bank_client import BankClient, parse_cluster
    from fairbank.slurm.history_import import import_jobs

    bank = BankClient(context.client)
    bank.require_full_view()
    cluster = parse_cluster(find_cluster(context))
    now = int(context.bank_time)
    jobs = parse_job_table(read_csv(options, JOB_FIELDS), _job_rules(context, cluster, now))
    source = os.path.basename(options.file)
    name = "standard input" if options.file == "-" else source
    with Stages(options) as progress:
        predicted = import_jobs(
            bank,
            cluster,
            jobs,
            now,
            source=source,
            cover=options.cover,
            dry_run=True,
            progress=progress,
        )
    if options.dry_run or not predicted.charged:
        left_out = show_history(context, predicted, name, dry_run=options.dry_run)
        return FOUND if left_out else 0
    runs = counted(len(predicted.charged), "run")
    unknown = runs_without_owner(predicted)
    among = f", {unknown} among them" if unknown else ""
    price = of_resources(predicted.charged, price_text)
    question = f"Charge {runs}, {price}{among}?"
    if not context.confirm(question, needs_yes=exceeds_credit(predicted)):
        context.note("Nothing was changed.")
        return NOT_DONE
    with Stages(options) as progress:
        result = import_jobs(
            bank, cluster, jobs, now, source=source, cover=options.cover, progress=progress
        )
    return FOUND if show_history(context, result, name, dry_run=False) else 0


def _job_rules(context: Context, cluster: BankCluster, now: int) -> JobFileRules:
    """Return what a file of jobs may say of a cluster and of time."""
    from fairbank.bank.pricing import known_qos
    from fairbank.csv_import.jobs import JobFileRules
    from fairbank.unix_users import find_uid

    check_qos = partial(
        known_qos, qos_factors=cluster.qos_factors, qos_resources=cluster.qos_resources, field="qos"
    )
    return JobFileRules(
        partitions=cluster.partitions,
        check_qos=check_qos,
        uid_of=find_uid,
        now=now,
        zone=context.zone,
    )


COMMAND = Noun(
    "import what other programs recorded",
    {
        "csv": Command(
            "charge finished jobs of any scheduler, each once; exit code 8 if some are left out",
            (
                "{} jobs.csv --dry-run",
                "{} jobs.csv --column job_id=JobID --column account=Project",
                "{} jobs.csv --columns pbs.toml --delimiter ';' --cover",
            ),
            _add_csv,
            _csv,
            reads=False,
            columns=_csv_columns,
        )
    },
)
