"""Pending jobs and those on nodes, with requests and allocations: `scontrol --details show job`.

Of any version, with `--oneliner`. Without `--details` the share of each node is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from fairbank.cluster.dependency import Dependencies
from fairbank.cluster.node import Gpus
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.hostlist import expand
from fairbank.core.slurm_numbers import PRIORITY_MAX
from fairbank.core.time import DAY
from fairbank.core.tres import parse_counts
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.columns import read_rows
from fairbank.slurm.parsers.pending_jobs import COMMAND, job_lines
from fairbank.slurm.parsers.scheduler.dependencies import read_dependencies
from fairbank.slurm.parsers.values import STATES_WITH_NODES, ParsedRows

TASKS_MAX = 4_000_000
"""Slurm's own limit of MaxArraySize."""
FOREVER = 365 * DAY
"""Seconds: how an unlimited time limit is planned."""
_NOTHING = frozenset({"", "(null)", "N/A", "None", "*"})
_GIVEN = re.compile(r"Nodes=(\S+) CPU_IDs=(\S*) Mem=(\d{1,12}) GRES=(\S*)", re.ASCII)
_GRES = re.compile(
    r"(?:gres[:/])?gpu(?::([A-Za-z][\w.-]*))?(?:[:=](\d{1,6}))?(?:\([^)]*\))?", re.ASCII
)
_CPUS = re.compile(r"cpu[:=]\d{1,9}", re.ASCII)
_SIZE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([KMGTP]?)", re.ASCII)
_STEPS = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}
_TASKS = re.compile(r"(\d{1,7})(?:-(\d{1,7})(?::(\d{1,7}))?)?", re.ASCII)


class JobNodes(msgspec.Struct, frozen=True):
    """Resources that a job has on each of these nodes."""

    nodes: tuple[str, ...]
    cpus: int
    memory: int
    gpus: tuple[Gpus, ...] = ()


class SlurmJob(msgspec.Struct, frozen=True, kw_only=True):
    """Job as slurmctld has it. Instants are seconds since 1970, times seconds.

    qos           the first that it requested; the others are in `other_qos` reservation   as
    requested: a name, or several with commas tasks         of an array that have not started;
    `throttle` limits those that run at once task          of an array that has started, or was
    separated from the others limit         None: the partition's reason        why it is pending,
    in Slurm's word, as of slurmctld's last check dependencies  on other jobs, as far as they are
    open licences      number of each tres          what it requests or has, by name allocated
    nodes that it has; empty if it is pending
    """

    job_id: int
    name: str
    state: str
    user: str
    account: str
    qos: str
    partitions: tuple[str, ...]
    priority: int
    submitted: int
    eligible: int | None
    started: int | None
    ends: int | None
    expected: int | None
    limit: int | None
    time_min: int | None
    reason: str
    dependencies: Dependencies
    reservation: str | None
    wanted: ResourceRequest
    licences: Mapping[str, int]
    tres: Mapping[str, int]
    array: int | None = None
    task: int | None = None
    tasks: tuple[int, ...] = ()
    throttle: int | None = None
    allocated: tuple[JobNodes, ...] = ()
    other_qos: tuple[str, ...] = ()

    @property
    def squeue_name(self) -> str:
        """Name in squeue: for a task of an array, the array's number and its own."""
        return (
            str(self.job_id)
            if self.array is None or self.task is None
            else f"{self.array}_{self.task}"
        )

    @property
    def is_pending(self) -> bool:
        """True if it waits."""
        return self.state == "PENDING"


def read_jobs(text: str) -> ParsedRows[SlurmJob]:
    """Read pending jobs and those on nodes.

    A request unknown to the scheduler here is unreadable.
    """
    return read_rows(COMMAND, job_lines(text), _job)


def _job(cells: dict[str, str]) -> SlurmJob | None:
    state = words.state(cells["JobState"], "JobState")
    waits = state == "PENDING"
    if not waits and state not in STATES_WITH_NODES:
        return None
    array, tasks = cells.get("ArrayJobId"), cells["ArrayTaskId"]
    several = bool(tasks) and not tasks.isdecimal()
    start = words.instant(words.required(cells, "StartTime"), "StartTime")
    qos, *others = cells["QOS"].split(",")
    tres = words.tres(cells.get("TRES", cells.get("ReqTRES" if waits else "AllocTRES", "")), "TRES")
    counts = (
        {name: int(count) for name, count in parse_counts(tres, field="TRES").items()}
        if tres
        else {}
    )
    return SlurmJob(
        job_id=words.number(cells["JobId"], "JobId", most=ids.JOB_ID_MAX),
        name=cells.get("JobName", ""),
        state=state,
        user=words.user(cells["User"], "UserId"),
        account=ids.name(cells["Account"], field="Account"),
        qos=qos,
        partitions=tuple(
            ids.name(name, field="Partition")
            for name in words.required(cells, "Partition").split(",")
        ),
        priority=words.number(cells["Priority"], "Priority", most=PRIORITY_MAX),
        submitted=words.required_instant(
            words.instant(words.required(cells, "SubmitTime"), "SubmitTime"), "SubmitTime"
        ),
        eligible=words.instant(words.required(cells, "EligibleTime"), "EligibleTime"),
        started=None if waits else words.required_instant(start, "StartTime"),
        ends=None if waits else words.instant(words.required(cells, "EndTime"), "EndTime"),
        expected=start if waits else None,
        limit=_length(words.required(cells, "TimeLimit"), "TimeLimit"),
        time_min=_length(cells.get("TimeMin", "N/A"), "TimeMin"),
        reason=words.reason(cells.get("Reason", "None")),
        dependencies=read_dependencies(_text(cells, "Dependency")),
        reservation=_text(cells, "Reservation") or None,
        wanted=_wanted(cells, counts.get("node", 0)) if waits else ResourceRequest(),
        licences=_licences(_text(cells, "Licenses")),
        tres=counts,
        array=words.number(array, "ArrayJobId", most=ids.JOB_ID_MAX) if array else None,
        task=int(tasks) if tasks and not several else None,
        tasks=_tasks(tasks) if several else (),
        throttle=(
            words.number(cells["ArrayTaskThrottle"], "ArrayTaskThrottle")
            if "ArrayTaskThrottle" in cells
            else None
        ),
        allocated=tuple(_allocated_nodes(cells["Given"])),
        other_qos=tuple(others),
    )


def _allocated_nodes(text: str) -> Iterator[JobNodes]:
    for match in _GIVEN.finditer(text):
        yield JobNodes(
            tuple(expand(match[1], field="Nodes")),
            _cpus(match[2]),
            int(match[3]),
            _gpus(match[4], "GRES"),
        )


def _cpus(text: str) -> int:
    """Count the numbers that `0-8,12` names."""
    count = 0
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        count += words.number(last or first, "CPU_IDs") - words.number(first, "CPU_IDs") + 1
    return count


def _wanted(cells: Mapping[str, str], least: int) -> ResourceRequest:
    """Return the request.

    NumNodes grows while slurmctld tries to place a job; `least` is the request.
    """
    nodes, _, most = words.required(cells, "NumNodes").partition("-")
    wanted = least or words.number(nodes, "NumNodes")
    tasks = cells.get("NumTasks", "")
    per_node = cells.get("NtasksPerN:B:S:C", "0").partition(":")[0]
    return ResourceRequest(
        nodes=max(wanted, 1),
        max_nodes=words.number(most, "NumNodes") if most else None,
        tasks=None if tasks in _NOTHING else words.number(tasks, "NumTasks") or None,
        tasks_per_node=(
            None if per_node in _NOTHING else words.number(per_node, "NtasksPerN:B:S:C") or None
        ),
        cpus_per_task=_count(cells, "CPUs/Task"),
        cpus_per_node=_count(cells, "MinCPUsNode"),
        memory_per_node=(
            _size(cells["MinMemoryNode"], "MinMemoryNode") if "MinMemoryNode" in cells else None
        ),
        memory_per_cpu=(
            _size(cells["MinMemoryCPU"], "MinMemoryCPU") or None
            if "MinMemoryCPU" in cells
            else None
        ),
        gpus=_gpus_of_nodes(cells, max(wanted, 1), most),
        tmp=_size(cells.get("MinTmpDiskNode", "0"), "MinTmpDiskNode"),
        constraint=_text(cells, "Features"),
        prefer=_text(cells, "Prefer"),
        contiguous=cells.get("Contiguous", "0") == "1",
        exclusive=_is_exclusive(cells),
        shared=cells.get("OverSubscribe") == "YES",
        required=tuple(expand(_text(cells, "ReqNodeList"), field="ReqNodeList")),
        excluded=tuple(expand(_text(cells, "ExcNodeList"), field="ExcNodeList")),
    )


def _is_exclusive(cells: Mapping[str, str]) -> bool:
    """Return True for whole nodes.

    26.05 prints OverSubscribe=NO for nearly every job, and has Exclusive for whole nodes.
    """
    return (
        cells["Exclusive"] == "NODE" if "Exclusive" in cells else cells.get("OverSubscribe") == "NO"
    )


def _gpus_of_nodes(cells: Mapping[str, str], nodes: int, most: str) -> tuple[Gpus, ...]:
    """Return the GPUs of each node. GPUs of a job on one node are the same."""
    for field in ("TresPerSocket", "TresPerTask", "TresPerJob"):
        text = _without_cpus(_text(cells, field))
        alone = nodes == 1 and (most == "1" or cells.get("NumTasks") in ("1", "N/A"))
        if text and not (alone and field != "TresPerSocket"):
            raise InvalidInput(
                f"asks for {words.quoted(text)} in a way that is not known here", field=field
            )
        if text:
            return _gpus(text, field)
    return _gpus(_text(cells, "TresPerNode"), "TresPerNode")


def _without_cpus(text: str) -> str:
    """Remove the CPUs of a task, which newer versions print here as well as in CPUs/Task."""
    return ",".join(part for part in text.split(",") if not _CPUS.fullmatch(part))


def _gpus(text: str, field: str) -> tuple[Gpus, ...]:
    """Parse `gres:gpu:a100:2`, or `gpu:a100:2(IDX:0-1)` as printed for an allocation."""
    counts: dict[str, int] = {}
    for part in filter(None, re.split(r",(?![^(]*\))", text)):
        match = _GRES.fullmatch(part)
        if match is None:
            raise InvalidInput(
                f"asks for {words.quoted(part)}, and only GPUs are known here", field=field
            )
        counts[match[1] or ""] = counts.get(match[1] or "", 0) + int(match[2] or 1)
    return tuple(Gpus(kind, count) for kind, count in sorted(counts.items()) if count)


def _tasks(text: str) -> tuple[int, ...]:
    """Return the numbers that `1-5,7,10-20:2%3` names."""
    numbers: list[int] = []
    for part in text.partition("%")[0].split(","):
        match = _TASKS.fullmatch(part)
        if match is None:  # slurmctld cuts a long list off with dots
            raise InvalidInput(
                f"{words.quoted(text)} are no tasks of an array",
                field="ArrayTaskId",
                remedy="give SLURM_BITSTR_LEN=0",
            )
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last - first > TASKS_MAX or not step:
            raise InvalidInput(f"{words.quoted(text)} are too many tasks", field="ArrayTaskId")
        numbers.extend(range(first, last + 1, step))
    return tuple(numbers)


def _licences(text: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for part in filter(None, re.split(r"[,;|]", text)):
        name, _, count = part.partition(":")
        counts[name] = words.number(count, "Licenses") if count else 1
    return counts


def _length(text: str, field: str) -> int | None:
    if text in ("UNLIMITED", "INFINITE"):
        return FOREVER
    return (
        None
        if text in ("N/A", "Partition_Limit", "NOT_SET", "")
        else words.length_seconds(text, field)
    )


def _size(text: str, field: str) -> int:
    """Return `2G`, `1000M` or `2.50G` in MiB."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise InvalidInput(f"{words.quoted(text)} is not a size", field=field)
    return round(float(match[1]) * _STEPS[match[2]])


def _count(cells: Mapping[str, str], field: str) -> int:
    text = cells.get(field, "1")
    return 1 if text in _NOTHING else max(words.number(text, field), 1)


def _text(cells: Mapping[str, str], field: str) -> str:
    text = cells.get(field, "")
    return "" if text in _NOTHING else text
