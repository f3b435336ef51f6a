"""Every limit of sacctmgr makes a job of the recorded queue wait for its own reason, and the
explanation names it with its figures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from fairbank.priority.limits.reasons import ASSOC, QOS, LimitKind
from fairbank.scheduling.explain.answer import Explanation
from fairbank.scheduling.explain.explanation import explain_on_nodes
from fairbank.slurm.parsers.limits import QOS_LIMITS
from fairbank.slurm.queue_snapshot.answers import COMMANDS, read_answers
from fairbank.slurm.queue_snapshot.snapshot import build_queue
from tests.slurm.set_limits import OF_GROUP, OF_QOS, OF_USER, SetLimit, assert_named, limits_of

QUEUE = Path(__file__).parents[2] / "golden" / "slurm-22.05" / "queue"
RELEASE = "24.05.0"
"""First release that tests every limit."""
JOB = 16
OWNERS = {
    "Account=root UserName= ": (ASSOC, "of account root", OF_GROUP),
    "Account=wg_bio UserName= ": (ASSOC, "of account wg_bio", OF_GROUP),
    "Account=wg_bio UserName=carol(60603) ": (
        ASSOC,
        "of user carol, account wg_bio",
        OF_GROUP | OF_USER,
    ),
    "normal": (QOS, "normal", OF_QOS),
    "high": (QOS, "high", OF_QOS),
}
"""By the beginning of a line of assoc_mgr, or the name of a QOS; `high` is the partition's."""


def limits() -> Iterator[SetLimit]:
    for name, (_, _, kinds) in OWNERS.items():
        yield from limits_of(name, kinds)


def texts_with(limit: SetLimit) -> Mapping[str, str]:
    """Return the recorded output with this limit and one job first in the queue."""
    texts = {name: (QUEUE / f"{name}.txt").read_text() for name in COMMANDS}
    texts["config"] = (
        texts["config"].replace("limits,qos", "limits,qos,safe").replace("22.05.8", RELEASE)
    )
    texts["partitions"] = re.sub(
        r"(?m)^(PartitionName=gpu .*) QoS=N/A", r"\1 QoS=high", texts["partitions"]
    )
    texts["jobs"] = re.sub(
        rf"(?m)^(JobId={JOB} .*) Priority=\d+ (.*) Partition=gpu,gpu-t4 ",
        r"\1 Priority=4000000000 \2 Partition=gpu ",
        texts["jobs"],
    )
    owner, _, fields = OWNERS[limit.owner]
    column, _ = fields[limit.kind]
    value = str(limit.limit) if limit.tres is None else f"{limit.tres}={limit.limit}"
    if owner == ASSOC:
        start = f"ClusterName=lab {limit.owner}"
        texts["limits"] = re.sub(
            rf"(?m)^({re.escape(start)}.*) {column}=\S*", rf"\1 {column}={value}", texts["limits"]
        )
    else:
        if limit.kind in (LimitKind.GRP_WALL, LimitKind.MAX_WALL):
            value = f"00:{limit.limit:02}:00"
        rows = [line.split("|") for line in texts["qos-limits"].splitlines()]
        for row in rows:
            if row[0] == limit.owner:
                row[QOS_LIMITS.columns.index(column)] = value
        texts["qos-limits"] = "".join(f"{'|'.join(row)}\n" for row in rows)
    return texts


def explained(texts: Mapping[str, str]) -> Explanation:
    answers, unreadable = read_answers(texts)
    assert unreadable == ()
    queue = build_queue(answers)
    return explain_on_nodes(queue.snapshot, queue.parameters, JOB, queue.now, allowed=None)


@pytest.mark.parametrize("limit", list(limits()), ids=lambda limit: f"{limit.owner} {limit.reason}")
def test_every_limit_is_named_with_its_figures(limit: SetLimit) -> None:
    owner, name, _ = OWNERS[limit.owner]
    where = f"{'association' if owner == ASSOC else 'QOS'} {name}"
    assert_named(explained(texts_with(limit)), limit, where)


@pytest.mark.parametrize(
    "kind", [LimitKind.MAX_TRES_RUN_MINS_PER_USER, LimitKind.MAX_TRES_RUN_MINS_PER_ACCOUNT]
)
def test_run_minutes_of_a_user_or_account_hold_no_job_before_24_05(kind: LimitKind) -> None:
    texts = texts_with(SetLimit("normal", kind, "cpu", 0, 0))
    assert "CpuRunMins" in explained(texts).code
    earlier = {**texts, "config": texts["config"].replace(RELEASE, "23.11.10")}
    assert explained(earlier).code == "Resources"


def test_figures_of_running_jobs_are_named() -> None:
    """The running jobs of the account have 3 GPUs and 45 billing units, 36 of them until 18:31."""
    account = "Account=wg_bio UserName= "
    gpus = explained(texts_with(SetLimit(account, LimitKind.GRP_TRES, "gres/gpu", 10, 8)))
    assert gpus.headline == (
        "Job 16 waits: association of account wg_bio allows 10 gres/gpu (GrpTRES), 3 in use;"
        " this job asks for 8 (AssocGrpGRES)."
    )
    fence = explained(texts_with(SetLimit(account, LimitKind.GRP_TRES_MINS, "billing", 6_000, 0)))
    assert fence.headline == (
        "Job 16 waits: association of account wg_bio allows 6,000 billing unit-minutes"
        " (GrpTRESMins), 2,578 reserved by running jobs; this job asks for 5,760"
        " (AssocGrpBillingMinutes)."
    )
