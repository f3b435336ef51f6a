"""Columns of sacct and sstat, and their formats."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from fairbank.report.slurm.job_rows import NO_LIMIT
from fairbank.report.slurm.layout import SlurmColumn, table
from fairbank.report.slurm.notation import (
    NONE,
    NONE_ASSIGNED,
    PARTITION_LIMIT,
    UNLIMITED,
    Notation,
    Uncut,
    Unmarked,
    Writer,
    Written,
    constant,
    count,
    duration,
    exit_code,
    mebibytes,
    plain,
    time,
)

_USAGE = (
    "maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,maxrssnode,maxrsstask,averss,"
    "maxpages,maxpagesnode,maxpagestask,avepages,mincpu,mincpunode,mincputask,avecpu,ntasks"
)
_FREQUENCY = "avecpufreq,reqcpufreqmin,reqcpufreqmax,reqcpufreqgov"
_DISK = (
    "maxdiskread,maxdiskreadnode,maxdiskreadtask,avediskread,"
    "maxdiskwrite,maxdiskwritenode,maxdiskwritetask,avediskwrite"
)
_TRES_IN = (
    "tresusageinave,tresusageinmax,tresusageinmaxn,tresusageinmaxt,"
    "tresusageinmin,tresusageinminn,tresusageinmint,tresusageintot"
)
FORMAT = "jobid,jobname,partition,account,alloccpus,state,exitcode"
BRIEF_FORMAT = "jobid,state,exitcode"
LONG_FORMAT = (
    f"jobid,jobidraw,jobname,partition,{_USAGE},alloccpus,elapsed,state,exitcode,{_FREQUENCY},"
    f"reqmem,consumedenergy,{_DISK},reqtres,alloctres,{_TRES_IN},"
    "tresusageoutmax,tresusageoutmaxn,tresusageoutmaxt,tresusageoutave,tresusageouttot"
)
_TRES_OUT = _TRES_IN.replace("usagein", "usageout")
STAT_FORMAT = f"jobid,{_USAGE},{_FREQUENCY},consumedenergy,{_DISK},{_TRES_IN},{_TRES_OUT}"
PIDS_FORMAT = "jobid,nodelist,pids"


class TaskUsage(NamedTuple):
    """Usage of a resource by the tasks of a step: the extreme, where it was, and the average.

    Of processors the extreme is the least, of all others the most. Sizes are bytes, processor time
    is seconds. What is not known of a step with several tasks is None.
    """

    extreme: int | None
    node: str | None = ""
    task: int | None = 0
    average: int | None = None


class GpuUse(NamedTuple):
    """Use of the GPUs of a step: seconds for which they were busy, of those of all of them for
    which it is known, and the seconds for which samples were taken.
    """

    busy: float
    known: float
    sampled: float


class AccountingLine(NamedTuple):
    """Run of a job, or with `step` a step of it (`batch`, `0`).

    `label` is the job as sacct names it, such as `12_1`. Instants are seconds since 1970, times
    seconds, processor times milliseconds, memory MiB. None stands for what is not known, or does
    not apply to a step. `limit` is NO_LIMIT without a limit; None is that of the partition.
    """

    job_id: int
    label: str
    step: str = ""
    name: str | None = None
    user: str | None = None
    uid: int | None = None
    group: str | None = None
    gid: int | None = None
    account: str | None = None
    cluster: str | None = None
    partition: str | None = None
    qos: str | None = None
    requested_qos: str | None = None
    wckey: str | None = None
    db_index: int | None = None
    priority: int | None = None
    state: str = "PENDING"
    cancelled_by: int | None = None
    reason: str | None = None
    exit_code: tuple[int, int] | None = (0, 0)
    derived_exit_code: tuple[int, int] | None = None
    restarts: int | None = None
    flags: str | None = None
    submitted: int | None = None
    eligible: int | None = None
    started: int | None = None
    ended: int | None = None
    elapsed: int = 0
    suspended: int = 0
    planned: int | None = None
    limit: int | None = None
    nodes: str = ""
    node_count: int = 0
    allocated_nodes: int = 0
    requested_nodes: int = 0
    cpus: int = 0
    requested_cpus: int = 0
    requested_memory: int | None = None
    memory_is_per_cpu: bool = False
    tasks: int | None = None
    requested_tres: str | None = None
    allocated_tres: str | None = None
    features: str | None = None
    licenses: str | None = None
    reservation: str | None = None
    comment: str | None = None
    admin_comment: str | None = None
    system_comment: str | None = None
    extra: str | None = None
    submit_line: str | None = None
    work_dir: str | None = None
    std_in: str | None = None
    std_out: str | None = None
    std_err: str | None = None
    user_cpu: int | None = None
    system_cpu: int | None = None
    total_cpu: int | None = None
    processor: TaskUsage | None = None
    virtual: TaskUsage | None = None
    resident: TaskUsage | None = None
    gpu_use: GpuUse | None = None
    pids: str | None = None

    @property
    def full_label(self) -> str:
        """Name of the job or step."""
        return f"{self.label}.{self.step}" if self.step else self.label

    @property
    def full_number(self) -> str:
        """Number of the job, with the step."""
        return f"{self.job_id}.{self.step}" if self.step else str(self.job_id)

    @property
    def shown_state(self) -> str:
        """State, with the number of who cancelled it."""
        by = "" if self.cancelled_by is None else f" by {self.cancelled_by}"
        return self.state + (by if self.state == "CANCELLED" else "")

    @property
    def shown_nodes(self) -> str:
        """Nodes. A job without any has a text in their place."""
        return self.nodes or ("" if self.step else NONE_ASSIGNED)

    @property
    def start(self) -> int | str | None:
        """Start. A job that ended before it has none."""
        return NONE if self.started is None and self.ended is not None else self.started

    @property
    def job_limit(self) -> int | str | None:
        """Time limit of a job; steps have none."""
        if self.limit == NO_LIMIT:
            return UNLIMITED
        return self.limit if self.limit is not None or self.step else PARTITION_LIMIT

    @property
    def cpu_time(self) -> int:
        """Time of all CPUs."""
        return self.elapsed * self.cpus

    @property
    def planned_cpu(self) -> int | None:
        """Waiting time of all CPUs."""
        return None if self.planned is None else self.planned * self.requested_cpus


def _known(write: Writer) -> Writer:
    """Return the writer with a blank cell for None, and texts as they are."""

    def write_known(value: object, notation: Notation) -> Written:
        return value if value is None or isinstance(value, str) else write(value, notation)

    return write_known


def _date(at: int | str | None, notation: Notation) -> str:
    return Unmarked(at if isinstance(at, str) else time(at, notation))


def _minutes(seconds: int, notation: Notation) -> str:
    return str(seconds // 60)


def _status(code: tuple[int, int], notation: Notation) -> str:
    """Return the exit code. sacct takes 128 off a status that a shell made of a signal."""
    return exit_code((code[0] - 128 if code[0] >= 128 else code[0], code[1]), notation)


def _length(seconds: int, notation: Notation) -> str:
    return Uncut(duration(seconds, notation))


def _processor_time(milliseconds: int, notation: Notation) -> str:
    """Return `00:01:30`, or `01:30.250` below an hour with a fraction of a second."""
    seconds, rest = divmod(milliseconds, 1000)
    if rest and seconds < 3600:
        return f"{seconds // 60:02}:{seconds % 60:02}.{rest:03}"
    return duration(seconds, notation)


def _seconds_of_processors(seconds: int, notation: Notation) -> str:
    return _processor_time(seconds * 1000, notation)


def _part(show: Callable[[TaskUsage], Any], write: Writer = plain) -> Writer:
    return _known(lambda usage, notation: _known(write)(show(usage), notation))


def _gpus_together(use: GpuUse, notation: Notation) -> str:
    """Return the percentages of all GPUs of a step together."""
    return f"gres/gpuutil={round(100 * use.busy / use.sampled)}"


def _gpus_of_tasks(use: GpuUse, notation: Notation) -> str:
    return f"gres/gpuutil={round(100 * use.busy / use.known)}"


def _absent(name: str, width: int) -> SlurmColumn:
    """Return a column of something that Fairbank does not have."""
    return SlurmColumn(name, "job_id", constant(None), width=width)


def _usage_columns(disk_width: int) -> Iterator[SlurmColumn]:
    """Yield the columns of the usage of steps; averages of disks have a width of their own."""
    for name, field, widths, write in (
        ("MinCPU", "processor", (10, 10, 10, 10), _seconds_of_processors),
        ("MaxVMSize", "virtual", (10, 14, 14, 10), count),
        ("MaxRSS", "resident", (10, 10, 10, 10), count),
    ):
        extreme, node, task, average = widths
        yield SlurmColumn(name, field, _part(lambda usage: usage.extreme, write), width=extreme)
        yield SlurmColumn(f"{name}Node", field, _part(lambda usage: usage.node), width=node)
        yield SlurmColumn(f"{name}Task", field, _part(lambda usage: usage.task), width=task)
        yield SlurmColumn(
            f"Ave{name[3:]}", field, _part(lambda usage: usage.average, write), width=average
        )
    for name, extreme, node, task, average in (
        ("Pages", 8, 12, 14, 10),
        ("DiskRead", 12, 15, 15, disk_width),
        ("DiskWrite", 12, 16, 16, disk_width),
    ):
        yield _absent(f"Max{name}", extreme)
        yield _absent(f"Max{name}Node", node)
        yield _absent(f"Max{name}Task", task)
        yield _absent(f"Ave{name}", average)
    for way, width in (("In", 14), ("Out", 15)):
        for part in ("Ave", "Max", "MaxNode", "MaxTask", "Min", "MinNode", "MinTask", "Tot"):
            name, wide = f"TRESUsage{way}{part}", width + (4 if len(part) > 3 else 0)
            if way == "In" and part in ("Ave", "Tot"):
                shown = _gpus_of_tasks if part == "Ave" else _gpus_together
                yield SlurmColumn(name, "gpu_use", _known(shown), width=wide)
            else:
                yield _absent(name, wide)
    yield _absent("AveCPUFreq", 10)
    for name, width in (("", 10), ("Min", 13), ("Max", 13), ("Gov", 13)):
        yield _absent(f"ReqCPUFreq{name}", width)
    yield SlurmColumn("ConsumedEnergy", "job_id", constant("0"), width=14)
    yield SlurmColumn("ConsumedEnergyRaw", "job_id", constant("0"), width=17)
    yield SlurmColumn("NTasks", "tasks", plain, width=8)


def _sorted_tres(value: Written, notation: Notation) -> Written:
    """Return TRES in the order of their names, as slurmdbd gives them."""
    return ",".join(sorted(value.split(","))) if isinstance(value, str) else value


_SACCT = (
    SlurmColumn("Account", "account", plain, width=10),
    SlurmColumn("AdminComment", "admin_comment", plain, width=15),
    SlurmColumn("AllocCPUS", "cpus", plain, width=10),
    SlurmColumn("AllocNodes", "allocated_nodes", count, width=10),
    SlurmColumn("AllocTRES", "allocated_tres", _sorted_tres, width=10),
    _absent("AssocID", 7),
    _absent("BlockID", 16),
    SlurmColumn("Cluster", "cluster", plain, width=10),
    SlurmColumn("Comment", "comment", plain, width=14),
    SlurmColumn("Constraints", "features", plain, width=19),
    _absent("Container", 19),
    SlurmColumn("CPUTime", "cpu_time", _length, width=10),
    SlurmColumn("CPUTimeRAW", "cpu_time", plain, width=10),
    SlurmColumn("DBIndex", "db_index", plain, width=-21),
    SlurmColumn("DerivedExitCode", "derived_exit_code", _known(exit_code), width=15),
    SlurmColumn("Elapsed", "elapsed", _length, width=10),
    SlurmColumn("ElapsedRaw", "elapsed", plain, width=10),
    SlurmColumn("Eligible", "eligible", _date, width=19),
    SlurmColumn("End", "ended", _date, width=19),
    SlurmColumn("ExitCode", "exit_code", _known(_status), width=8),
    SlurmColumn("Extra", "extra", plain, width=14),
    _absent("FailedNode", 8),
    SlurmColumn("Flags", "flags", plain, width=19),
    SlurmColumn("GID", "gid", plain, width=6),
    SlurmColumn("Group", "group", plain, width=9),
    SlurmColumn("JobID", "full_label", plain, width=-12),
    SlurmColumn("JobIDRaw", "full_number", plain, width=-12),
    SlurmColumn("JobName", "name", plain, width=10),
    _absent("Layout", 9),
    SlurmColumn("Licenses", "licenses", plain, width=10),
    _absent("McsLabel", 12),
    SlurmColumn("NCPUS", "cpus", plain, width=10),
    SlurmColumn("NNodes", "node_count", plain, width=8),
    SlurmColumn("NodeList", "shown_nodes", plain, width=15),
    SlurmColumn("Partition", "partition", plain, width=10),
    SlurmColumn("Planned", "planned", _known(_length), width=10),
    SlurmColumn("PlannedCPU", "planned_cpu", _known(_length), width=10),
    SlurmColumn("PlannedCPURAW", "planned_cpu", plain, width=13),
    SlurmColumn("Priority", "priority", plain, width=10),
    SlurmColumn("QOS", "qos", plain, width=10),
    _absent("QOSRAW", 6),
    SlurmColumn("QOSREQ", "requested_qos", plain, width=10),
    SlurmColumn("Reason", "reason", plain, width=22),
    SlurmColumn("ReqCPUS", "requested_cpus", plain, width=8),
    SlurmColumn("ReqMem", "requested_memory", _known(mebibytes), width=10),
    SlurmColumn("ReqNodes", "requested_nodes", count, width=8),
    SlurmColumn("ReqTRES", "requested_tres", _sorted_tres, width=10),
    SlurmColumn("Reservation", "reservation", plain, width=20),
    _absent("ReservationId", 8),
    SlurmColumn("Restarts", "restarts", plain, width=8),
    _absent("SLUID", 14),
    SlurmColumn("Start", "start", _date, width=19),
    SlurmColumn("State", "shown_state", plain, width=10),
    SlurmColumn("StdErr", "std_err", plain),
    SlurmColumn("StdIn", "std_in", plain),
    SlurmColumn("StdOut", "std_out", plain),
    SlurmColumn("Submit", "submitted", _date, width=19),
    SlurmColumn("SubmitLine", "submit_line", plain),
    SlurmColumn("Suspended", "suspended", _length, width=10),
    SlurmColumn("SystemComment", "system_comment", plain, width=15),
    SlurmColumn("SystemCPU", "system_cpu", _known(_processor_time), width=10),
    SlurmColumn("Timelimit", "job_limit", _known(duration), width=10),
    SlurmColumn("TimelimitRaw", "job_limit", _known(_minutes), width=10),
    SlurmColumn("TotalCPU", "total_cpu", _known(_processor_time), width=10),
    SlurmColumn("UID", "uid", plain, width=6),
    SlurmColumn("User", "user", plain, width=9),
    SlurmColumn("UserCPU", "user_cpu", _known(_processor_time), width=10),
    SlurmColumn("WCKey", "wckey", plain, width=10),
    _absent("WCKeyID", 10),
    SlurmColumn("WorkDir", "work_dir", plain),
)
_SSTAT = (
    SlurmColumn("JobID", "full_number", plain, width=-12),
    SlurmColumn("Nodelist", "nodes", plain),
    SlurmColumn("Pids", "pids", plain),
)


def _by_name(column: SlurmColumn) -> str:
    return column.name.lower()


SACCT = table(*sorted([*_SACCT, *_usage_columns(14)], key=_by_name))
"""By the names that --format takes in any case; a short form means the first that fits."""
SSTAT = table(*sorted([*_SSTAT, *_usage_columns(12)], key=_by_name))
