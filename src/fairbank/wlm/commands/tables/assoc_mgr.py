"""scontrol show assoc_mgr: associations and QOS with limits and usage."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fairbank.core.errors import Conflict
from fairbank.report.slurm.accounting_json import tres_counts
from fairbank.report.slurm.job_rows import JobLine
from fairbank.report.slurm.sacctmgr import AssociationLine, QosLine
from fairbank.report.slurm.sshare import ShareRow
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.commands.arguments import CommandLine
from fairbank.wlm.commands.tables.rows import fetch

_ALL = ("assoc", "qos")
_JOB_FIELDS = ("account", "user", "qos", "state", "accrued", "allocated_tres")
_ENDED_LATER = ("PENDING", "RUNNING", "SUSPENDED")
ASSOCIATION = (
    "ClusterName={cluster} Account={account} UserName={user} Partition={partition} Priority=0"
    " ID={number}",
    "SharesRaw/Norm/Level/Factor={shares}/{norm_shares:.2f}/0/{factor:.2f}",
    "UsageRaw/Norm/Efctv={usage:.2f}/{norm_usage:.2f}/{effective:.2f}",
    "ParentAccount={parent} Lft=0 DefAssoc={is_default}",
    "GrpJobs={grp_jobs} GrpJobsAccrue={grp_jobs_accrue}",
    "GrpSubmitJobs={grp_submit_jobs} GrpWall={grp_wall}",
    "GrpTRES={grp_tres}",
    "GrpTRESMins={grp_tres_mins}",
    "GrpTRESRunMins={grp_tres_run_mins}",
    "MaxJobs={max_jobs} MaxJobsAccrue={max_jobs_accrue} MaxSubmitJobs={max_submit_jobs}"
    " MaxWallPJ={max_wall}",
    "MaxTRESPJ={max_tres}",
    "MaxTRESPN={max_tres_per_node}",
    "MaxTRESMinsPJ={max_tres_mins}",
    "MinPrioThresh=",
)
QOS = (
    "QOS={name}({number})",
    "UsageRaw={usage:.6f}",
    "GrpJobs={grp_jobs} GrpJobsAccrue={grp_jobs_accrue} GrpSubmitJobs={grp_submit_jobs}"
    " GrpWall={grp_wall}",
    "GrpTRES={grp_tres}",
    "GrpTRESMins={grp_tres_mins}",
    "GrpTRESRunMins={grp_tres_run_mins}",
    "MaxWallPJ={max_wall}",
    "MaxTRESPJ={max_tres}",
    "MaxTRESPN={max_tres_per_node}",
    "MaxTRESMinsPJ={max_tres_mins}",
    "MinPrioThresh= ",
    "MinTRESPJ={min_tres}",
    "PreemptMode={preempt_mode} Priority={priority}",
    "Account Limits=No Accounts",
    "User Limits=No Users",
)


class JobSum(NamedTuple):
    """Jobs of an association or QOS: how many run, wait with growing age, and are known."""

    running: int
    accruing: int
    submitted: int
    tres: Counter[str]


def show_limits(line: CommandLine, words: Sequence[str]) -> int:
    """Print limits and usage as words such as `account=physics` ask, and return the exit code."""
    conditions = {
        key.lower(): value.split(",") for key, _, value in (word.partition("=") for word in words)
    }
    kinds = conditions.pop("flags", _ALL)
    with Controller() as controller:
        associations = fetch(controller, "associations", AssociationLine, AssociationLine._fields)
        qos = fetch(controller, "qos", QosLine, QosLine._fields).rows
        shares = _shares(controller)
        matching = {"states": _ENDED_LATER, "tasks": True}
        jobs = fetch(controller, "jobs", JobLine, _JOB_FIELDS, matching).rows
    behind = " " if "oneliner" in line.options else "\n    "
    print("Current Association Manager state\n")
    if "assoc" in kinds:
        print("Association Records\n")
        rows = _associations(associations.rows, shares, jobs)
        _print(rows, ASSOCIATION, behind, conditions, ("account", "user"))
    if "qos" in kinds:
        print("QOS Records\n")
        _print(_qos(qos, jobs), QOS, behind, conditions, ("qos",))
    return 0


def _shares(controller: Controller) -> list[Any]:
    """Return the shares; none under priority/basic, which has no usage."""
    try:
        return fetch(controller, "shares", ShareRow, ShareRow._fields).rows
    except Conflict:
        return []


def _print(
    rows: Iterable[Mapping[str, Any]],
    template: Sequence[str],
    behind: str,
    conditions: Mapping[str, Sequence[str]],
    keys: Sequence[str],
) -> None:
    for row in rows:
        if all(
            row["name" if key == "qos" else key] in conditions[key]
            for key in keys
            if key in conditions
        ):
            print(behind.join(text.format_map(row) for text in template))


def _associations(
    lines: Sequence[Any], shares: Sequence[Any], jobs: Sequence[Any]
) -> Iterator[dict[str, Any]]:
    """Yield the values of each association."""
    by_key = {(share.account, share.user, share.partition): share for share in shares}
    numbers = {line.account: line.number for line in lines if not line.user}
    parents = {line.account: line.parent for line in lines if not line.user}
    of_users: defaultdict[Any, list[Any]] = defaultdict(list)
    for job in jobs:
        account = job.account or ""
        of_users[account, job.user].append(job)
        while account:
            of_users[account, ""].append(job)
            account = parents.get(account, "")
    for line in lines:
        share = by_key.get((line.account, line.user, line.partition), ShareRow(line.account))
        values = _with_usage(line, _sum(of_users[line.account, line.user]), share)
        yield values | {
            "parent": f"{line.parent}({numbers.get(line.parent, 0)})" if line.parent else "",
            "is_default": "Yes" if line.is_default else "No",
            "norm_shares": share.norm_shares or 0.0,
            "factor": share.factor or 0.0,
            "usage": share.usage or 0.0,
            "norm_usage": share.norm_usage or 0.0,
            "effective": share.effective or 0.0,
        }


def _qos(lines: Sequence[Any], jobs: Sequence[Any]) -> Iterator[dict[str, Any]]:
    for line in lines:
        own = [job for job in jobs if job.qos == line.name]
        values = _with_usage(line, _sum(own), line)
        yield values | {"preempt_mode": line.preempt_mode.replace("cluster", "OFF").upper()}


def _sum(jobs: Sequence[Any]) -> JobSum:
    running = [job for job in jobs if job.state in ("RUNNING", "SUSPENDED")]
    tres: Counter[str] = Counter()
    for job in running:
        tres.update(tres_counts(job.allocated_tres))
    accruing = sum(job.state == "PENDING" and job.accrued is not None for job in jobs)
    return JobSum(len(running), accruing, len(jobs), tres)


def _with_usage(line: Any, jobs: JobSum, share: Any) -> dict[str, Any]:
    """Return the values of a row, limits with their usage as Slurm writes them."""
    values: dict[str, Any] = {
        name: "" if value is None else value for name, value in line._asdict().items()
    }
    for name, used in (
        ("grp_jobs", jobs.running),
        ("grp_jobs_accrue", jobs.accruing),
        ("grp_submit_jobs", jobs.submitted),
    ):
        values[name] = f"{_limit(getattr(line, name))}({used})"
    wall = None if line.grp_wall is None else line.grp_wall // 60
    values["grp_wall"] = f"{_limit(wall)}({share.wall:.2f})"
    values["max_wall"] = "" if line.max_wall is None else line.max_wall // 60
    values["grp_tres"] = _pairs(line.grp_tres, jobs.tres)
    values["grp_tres_mins"] = _pairs(line.grp_tres_mins, tres_counts(share.used))
    values["grp_tres_run_mins"] = _pairs(line.grp_tres_run_mins, tres_counts(share.running))
    for name in ("max_tres", "max_tres_per_node", "max_tres_mins", "min_tres"):
        if name in values:
            values[name] = ",".join(
                f"{tres}={count}" for tres, count in tres_counts(values[name]).items()
            )
    return values


def _limit(limit: int | None) -> str:
    return "N" if limit is None else str(limit)


def _pairs(limits: str, used: Mapping[str, int]) -> str:
    bounds = tres_counts(limits)
    names = dict.fromkeys([*used, *bounds])
    return ",".join(f"{name}={_limit(bounds.get(name))}({used.get(name, 0)})" for name in names)
