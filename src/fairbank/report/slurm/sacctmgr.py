"""Columns of sacctmgr show."""

from typing import NamedTuple

from fairbank.report.slurm.layout import SlurmColumn, table
from fairbank.report.slurm.notation import Notation, Written, duration, plain


class AssociationLine(NamedTuple):
    """Association of an account, or of a user with one. `user` is empty for an account.

    `depth` is the level of the account in the tree; that of a user is one more. `shares` is a
    number or `parent`. Limits of TRES are texts such as `cpu=10,gres/gpu=1`, times seconds. None
    stands for no limit.
    """

    account: str
    user: str = ""
    cluster: str = ""
    partition: str = ""
    parent: str = ""
    depth: int = 0
    number: int = 0
    shares: int | str = 1
    priority: int | None = None
    qos: str = ""
    default_qos: str = ""
    is_default: bool = False
    coordinators: str = ""
    grp_jobs: int | None = None
    grp_jobs_accrue: int | None = None
    grp_submit_jobs: int | None = None
    grp_wall: int | None = None
    grp_tres: str = ""
    grp_tres_mins: str = ""
    grp_tres_run_mins: str = ""
    max_jobs: int | None = None
    max_jobs_accrue: int | None = None
    max_submit_jobs: int | None = None
    max_wall: int | None = None
    max_tres: str = ""
    max_tres_per_node: str = ""
    max_tres_mins: str = ""


class UserLine(NamedTuple):
    """User. `admin` is None, Operator or Administrator, as a word."""

    user: str
    default_account: str = ""
    admin: str = "None"


class QosLine(NamedTuple):
    """QOS. Limits are as in AssociationLine; `pa` is for each account, `pu` for each user.

    `usage` is in billing-seconds, `wall` in minutes; `used` and `running` are minutes of each TRES.
    """

    name: str
    number: int = 0
    priority: int = 0
    grace_seconds: int = 0
    preempts: str = ""
    preempt_mode: str = "cluster"
    exempt_seconds: int | None = None
    flags: str = ""
    usage_threshold: float | None = None
    usage_factor: float = 1.0
    limit_factor: float | None = None
    grp_jobs: int | None = None
    grp_jobs_accrue: int | None = None
    grp_submit_jobs: int | None = None
    grp_wall: int | None = None
    grp_tres: str = ""
    grp_tres_mins: str = ""
    grp_tres_run_mins: str = ""
    max_wall: int | None = None
    max_tres: str = ""
    max_tres_per_node: str = ""
    max_tres_mins: str = ""
    max_tres_pu: str = ""
    max_tres_pa: str = ""
    max_tres_run_mins_pu: str = ""
    max_tres_run_mins_pa: str = ""
    max_jobs_pu: int | None = None
    max_jobs_pa: int | None = None
    max_jobs_accrue_pu: int | None = None
    max_jobs_accrue_pa: int | None = None
    max_submit_jobs_pu: int | None = None
    max_submit_jobs_pa: int | None = None
    min_tres: str = ""
    usage: float = 0.0
    wall: float = 0.0
    used: str = ""
    running: str = ""


class TresLine(NamedTuple):
    """TRES that is accounted."""

    kind: str
    name: str
    number: int


class ClusterLine(NamedTuple):
    """The cluster."""

    name: str
    host: str = ""
    qos: str = ""


def _wall(seconds: int | None, notation: Notation) -> Written:
    return None if seconds is None else duration(seconds, notation)


def _column(name: str, field: str, width: int, head: str = "") -> SlurmColumn:
    return SlurmColumn(name, field, plain, head, width=width)


_GROUP_LIMITS = (
    _column("GrpJobs", "grp_jobs", 7),
    _column("GrpJobsAccrue", "grp_jobs_accrue", 13),
    _column("GrpSubmitJobs", "grp_submit_jobs", 9, "GrpSubmit"),
    SlurmColumn("GrpWall", "grp_wall", _wall, width=11),
    _column("GrpTRES", "grp_tres", 13),
    _column("GrpTRESMins", "grp_tres_mins", 13),
    _column("GrpTRESRunMins", "grp_tres_run_mins", 13, "GrpTRESRunMin"),
    SlurmColumn("MaxWall", "max_wall", _wall, width=11),
    _column("MaxTRES", "max_tres", 13),
    _column("MaxTRESPerNode", "max_tres_per_node", 14),
    _column("MaxTRESMins", "max_tres_mins", 13),
)
ACCOUNT = table(
    _column("Account", "account", 10),
    _column("Description", "account", 20, "Descr"),
    _column("Organization", "account", 20, "Org"),
    _column("Coordinators", "coordinators", 20, "Coord"),
)
ASSOCIATION = table(
    _column("Cluster", "cluster", 10),
    _column("Account", "account", 10),
    _column("User", "user", 10),
    _column("Partition", "partition", 10),
    _column("Share", "shares", 9),
    _column("Fairshare", "shares", 9, "Share"),
    _column("Priority", "priority", 10),
    *_GROUP_LIMITS,
    _column("MaxJobs", "max_jobs", 7),
    _column("MaxJobsAccrue", "max_jobs_accrue", 13),
    _column("MaxSubmitJobs", "max_submit_jobs", 9, "MaxSubmit"),
    _column("QOS", "qos", 20),
    _column("DefaultQOS", "default_qos", 9, "Def QOS"),
    _column("ID", "number", 6),
    _column("ParentName", "parent", 10, "Par Name"),
)
USER = table(
    _column("User", "user", 10),
    _column("DefaultAccount", "default_account", 10, "Def Acct"),
    _column("AdminLevel", "admin", 9, "Admin"),
)
QOS = table(
    _column("Name", "name", 10),
    _column("ID", "number", 6),
    _column("Priority", "priority", 10),
    SlurmColumn("GraceTime", "grace_seconds", duration, width=10),
    _column("Preempt", "preempts", 10),
    SlurmColumn("PreemptExemptTime", "exempt_seconds", _wall, width=19),
    _column("PreemptMode", "preempt_mode", 11),
    _column("Flags", "flags", 40),
    _column("UsageThreshold", "usage_threshold", 11, "UsageThres"),
    _column("UsageFactor", "usage_factor", 11),
    *_GROUP_LIMITS,
    _column("MaxTRESPU", "max_tres_pu", 13),
    _column("MaxJobsPU", "max_jobs_pu", 9),
    _column("MaxJobsAccruePU", "max_jobs_accrue_pu", 15),
    _column("MaxSubmitJobsPU", "max_submit_jobs_pu", 11, "MaxSubmitPU"),
    _column("MaxTRESPA", "max_tres_pa", 13),
    _column("MaxJobsPA", "max_jobs_pa", 9),
    _column("MaxJobsAccruePA", "max_jobs_accrue_pa", 15),
    _column("MaxSubmitJobsPA", "max_submit_jobs_pa", 11, "MaxSubmitPA"),
    _column("MaxTRESRunMinsPA", "max_tres_run_mins_pa", 15),
    _column("MaxTRESRunMinsPU", "max_tres_run_mins_pu", 15),
    _column("MinTRES", "min_tres", 13),
    _column("LimitFactor", "limit_factor", 11),
)
CLUSTER = table(
    _column("Cluster", "name", 10), _column("ControlHost", "host", 15), _column("QOS", "qos", 20)
)
TRES = table(_column("Type", "kind", 8), _column("Name", "name", 15), _column("ID", "number", 6))
ACCOUNT_FORMAT = "Account,Description,Organization"
ASSOCIATION_FORMAT = (
    "Cluster,Account,User,Partition,Share,Priority,GrpJobs,GrpTRES,GrpSubmitJobs,GrpWall,"
    "GrpTRESMins,MaxJobs,MaxTRES,MaxTRESPerNode,MaxSubmitJobs,MaxWall,MaxTRESMins,QOS,"
    "DefaultQOS,GrpTRESRunMins"
)
USER_FORMAT = "User,DefaultAccount,AdminLevel"
QOS_FORMAT = (
    "Name,Priority,GraceTime,Preempt,PreemptExemptTime,PreemptMode,Flags,UsageThreshold,"
    "UsageFactor,GrpTRES,GrpTRESMins,GrpTRESRunMins,GrpJobs,GrpSubmitJobs,GrpWall,MaxTRES,"
    "MaxTRESPerNode,MaxTRESMins,MaxWall,MaxTRESPU,MaxJobsPU,MaxSubmitJobsPU,MaxTRESPA,"
    "MaxTRESRunMinsPA,MaxTRESRunMinsPU,MaxJobsPA,MaxSubmitJobsPA,MinTRES,LimitFactor"
)
CLUSTER_FORMAT = "Cluster,ControlHost,QOS"
TRES_FORMAT = "Type,Name,ID"
