"""Every limit of sacctmgr makes a job of the recorded queue wait for its own reason, and the
explanation names it with its figures.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbank.priority.limits.reasons import ASSOC, QOS, LimitKind, reason
from fairbank.scheduling.explain.answer import Explanation
from fairbank.scheduling.explain.explanation import explain_on_nodes
from fairbank.slurm.parsers.limits import QOS_LIMITS
from fairbank.slurm.queue_snapshot.snapshot import COMMANDS, build_queue, read_answers

QUEUE = Path(__file__).parents[2] / "golden" / "slurm-22.05" / "queue"
RELEASE = "24.05.0"
"""First release that tests every limit."""
JOB, MINUTES, NODES = 16, 60, 2
ASKED = {"cpu": 2, "mem": 2_000, "node": NODES, "billing": 96, "gres/gpu": 8}
"""What slurmctld printed of the job, billing units among it."""

# sacctmgr's columns, and the fields of scontrol show assoc_mgr.
GROUP = {
    LimitKind.GRP_TRES: "GrpTRES",
    LimitKind.GRP_TRES_MINS: "GrpTRESMins",
    LimitKind.GRP_TRES_RUN_MINS: "GrpTRESRunMins",
    LimitKind.GRP_JOBS: "GrpJobs",
    LimitKind.GRP_WALL: "GrpWall",
}
OWN = {
    LimitKind.MAX_TRES: "MaxTRESPJ",
    LimitKind.MAX_TRES_PER_NODE: "MaxTRESPN",
    LimitKind.MAX_TRES_MINS: "MaxTRESMinsPJ",
    LimitKind.MAX_JOBS: "MaxJobs",
    LimitKind.MAX_WALL: "MaxWallPJ",
}
OF_QOS = {
    LimitKind.MAX_TRES: "MaxTRES",
    LimitKind.MAX_TRES_PER_NODE: "MaxTRESPerNode",
    LimitKind.MAX_TRES_MINS: "MaxTRESMins",
    LimitKind.MAX_TRES_PER_USER: "MaxTRESPU",
    LimitKind.MAX_TRES_PER_ACCOUNT: "MaxTRESPA",
    LimitKind.MIN_TRES: "MinTRES",
    LimitKind.MAX_TRES_RUN_MINS_PER_USER: "MaxTRESRunMinsPU",
    LimitKind.MAX_TRES_RUN_MINS_PER_ACCOUNT: "MaxTRESRunMinsPA",
    LimitKind.MAX_JOBS_PER_USER: "MaxJobsPU",
    LimitKind.MAX_JOBS_PER_ACCOUNT: "MaxJobsPA",
    LimitKind.MAX_WALL: "MaxWall",
}
OWNERS = {
    "Account=root UserName= ": (ASSOC, "of account root", GROUP),
    "Account=wg_bio UserName= ": (ASSOC, "of account wg_bio", GROUP),
    "Account=wg_bio UserName=carol(60603) ": (ASSOC, "of user carol, account wg_bio", GROUP | OWN),
    "normal": (QOS, "normal", GROUP | OF_QOS),
    "high": (QOS, "high", GROUP | OF_QOS),
}
"""By the beginning of a line of assoc_mgr, or the name of a QOS; `high` is the partition's."""


class SetLimit(NamedTuple):
    """Limit of an owner, low enough to hold the job; `asked` is what the job asks for of it."""

    owner: str
    kind: LimitKind
    tres: str | None
    limit: int
    asked: int


@st.composite
def limits(draw: st.DrawFn) -> SetLimit:
    owner = draw(st.sampled_from(sorted(OWNERS)))
    kind = draw(st.sampled_from(sorted(OWNERS[owner][2], key=lambda kind: kind.value)))
    if kind in (LimitKind.GRP_WALL, LimitKind.MAX_WALL):
        return SetLimit(owner, kind, None, draw(st.integers(0, MINUTES - 1)), MINUTES)
    if "TRES" not in kind.value:
        return SetLimit(owner, kind, None, 0, 1)
    tres = draw(st.sampled_from(sorted(ASKED)))
    asked = ASKED[tres]
    if kind is LimitKind.MAX_TRES_PER_NODE:
        asked //= NODES
    elif "Mins" in kind.value:
        asked *= MINUTES
    more = kind is LimitKind.MIN_TRES
    limit = draw(st.integers(asked + 1, 10**9) if more else st.integers(0, asked - 1))
    return SetLimit(owner, kind, tres, limit, asked)


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
    column = fields[limit.kind]
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
    return explain_on_nodes(queue.snapshot, queue.parameters, JOB, queue.now, advice=False)


@settings(max_examples=150, deadline=None)
@given(limits())
def test_every_limit_is_named_with_its_figures(limit: SetLimit) -> None:
    owner, name, _ = OWNERS[limit.owner]
    answer = explained(texts_with(limit))
    assert answer.code == reason(owner, limit.kind, limit.tres)
    (check,) = (check for check in answer.checks if check.what == "limits in gpu")
    assert not check.ok
    where = f"{'association' if owner == ASSOC else 'QOS'} {name} allows "
    assert check.evidence.startswith(f"{answer.code}: {where}")
    assert f" {limit.limit:,} " in check.evidence
    assert f"({limit.kind.value})" in check.evidence
    assert check.evidence.endswith(f"; this job asks for {limit.asked:,}")
    assert answer.headline == (
        f"Job {JOB} waits: {check.evidence.partition(': ')[2]} ({answer.code})."
    )


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
