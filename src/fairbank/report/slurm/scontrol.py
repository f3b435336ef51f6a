"""Text of scontrol show job, node, partition, step and reservation.

In a line `{field:writer|word}` stands for a value of the row: the writer is one of WRITERS, the
word (default: `(null)`) stands for None. A part in `<>` is left out if a value in it is None and
has no word, and so is a line of such parts alone. A line with ? is only shown with --details.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from fairbank.report.slurm.job_rows import NO_LIMIT
from fairbank.report.slurm.notation import (
    NULL,
    UNLIMITED,
    Notation,
    Writer,
    duration,
    exit_code,
    flag,
    mebibytes,
    text,
    time,
    yes_no,
)

NO_JOBS = "No jobs in the system"
NO_RESERVATIONS = "No reservations in the system"
NO_LICENSES = "No licenses configured in Slurm."


def _limit(seconds: int, notation: Notation) -> str:
    return UNLIMITED if seconds == NO_LIMIT else duration(seconds, notation)


def _joined(words: str, notation: Notation) -> str:
    """Return a sentence as one word."""
    return re.sub(r"\s", "_", words)


def _load(hundredths: int, notation: Notation) -> str:
    return f"{hundredths / 100:.2f}"


WRITERS: Mapping[str, Writer] = {
    "": text,
    "time": time,
    "duration": duration,
    "limit": _limit,
    "flag": flag,
    "yes": yes_no,
    "exit": exit_code,
    "size": lambda size, notation: mebibytes(size, Notation()),
    "joined": _joined,
    "load": _load,
}

JOB = (
    "JobId={job_id} <ArrayJobId={array_job} ArrayTaskId={task_text} ><ArrayTaskThrottle={throttle}"
    " >JobName={name}",
    "UserId={user}({uid}) GroupId={group}({gid}) MCS_label=N/A",
    "Priority={priority} Nice={nice} Account={account} QOS={qos}< WCKey={wckey}>",
    "JobState={shown_state} Reason={shown_reason:joined} <FailedNode={failed_node} >"
    "Dependency={dependency}",
    "Requeue={requeue:flag} Restarts={restarts} BatchFlag={is_batch:flag} Reboot=0"
    " ExitCode={exit_code:exit}",
    "?DerivedExitCode={derived_exit_code:exit}",
    "RunTime={elapsed:duration} TimeLimit={limit:limit|Partition_Limit}"
    " TimeMin={least_limit:duration|N/A}",
    "SubmitTime={submitted:time|Unknown} EligibleTime={eligible:time|Unknown}",
    "AccrueTime={accrued:time|Unknown}",
    "StartTime={started:time|Unknown} EndTime={ends:time|Unknown} Deadline={deadline:time|N/A}",
    "<PreemptEligibleTime={preemptable:time} PreemptTime={preempted:time|None}>",
    "SuspendTime={suspended:time|None} SecsPreSuspend={seconds_before_suspension}"
    " LastSchedEval={last_tried:time|Unknown} Scheduler={scheduler}",
    "Partition={partition} AllocNode:Sid={submit_host}:{session}",
    "ReqNodeList={required_nodes} ExcNodeList={excluded_nodes}",
    "NodeList={nodes}< SchedNodeList={planned_nodes}>",
    "<BatchHost={batch_host}>",
    "NumNodes={node_range} NumCPUs={cpu_range} NumTasks={tasks|N/A} CPUs/Task={cpus_per_task|N/A}"
    " ReqB:S:C:T=0:0:*:*",
    "ReqTRES={requested_tres}",
    "AllocTRES={allocated_tres}",
    "Socks/Node=* NtasksPerN:B:S:C={tasks_per_node}:0:*:* CoreSpec=*",
    "?<JOB_GRES={gres}>",
    "?{shares}",
    "MinCPUsNode={least_cpus} MinMemory{memory_unit}={least_memory:size}"
    " MinTmpDiskNode={least_tmp:size}",
    "Features={features} DelayBoot=00:00:00",
    "<Prefer={preferred_features}>",
    "<Reservation={reservation}>",
    "OverSubscribe={sharing} Contiguous={contiguous:flag} Licenses={licenses} Network=(null)",
    "Command={command}",
    "WorkDir={work_dir}",
    "<AdminComment={admin_comment} >",
    "<SystemComment={system_comment} >",
    "<Comment={comment} >",
    "<Extra={extra} >",
    "<StdErr={std_err}>",
    "<StdIn={std_in}>",
    "<StdOut={std_out}>",
    "<KillOInInvalidDependent={kill_invalid}>",
    "<CpusPerTres={cpus_per_tres}>",
    "<MemPerTres={memory_per_tres}>",
    "<TresBind={tres_bind}>",
    "<TresPerJob={tres_per_job}>",
    "<TresPerNode={tres_per_node}>",
    "<TresPerSocket={tres_per_socket}>",
    "<TresPerTask={tres_per_task}>",
    "<MailUser={mail_user} MailType={mail_type}>",
    "<NtasksPerTRES={tasks_per_tres}>",
    "",
)
_SHARES = "?{shares}"
_SHARE = "  Nodes={nodes} CPU_IDs={cores} Mem={memory} GRES={gres}"

NODE = (
    "NodeName={name} <Arch={arch} >CoresPerSocket={cores} ",
    "CPUAlloc={allocated_cpus} CPUEfctv={usable_cpus} CPUTot={cpus} CPULoad={load:load}",
    "AvailableFeatures={features}",
    "ActiveFeatures={active_features}",
    "Gres={gres}",
    "?GresDrain=N/A",
    "?GresUsed={gres_used}",
    "<NodeAddr={address} ><NodeHostName={host} ><Port={port} ><Version={version}>",
    "<OS={system} >",
    "RealMemory={memory} AllocMem={allocated_memory} FreeMem={free_memory|N/A} Sockets={sockets}"
    " Boards={boards}",
    "<MemSpecLimit={reserved_memory}>",
    "State={state} ThreadsPerCore={threads} TmpDisk={tmp} Weight={weight} Owner=N/A MCS_label=N/A",
    "<Partitions={partitions} >",
    "BootTime={boot:time|None} SlurmdStartTime={daemon_start:time|None}",
    "LastBusyTime={last_busy:time|Unknown} ResumeAfterTime=None",
    "CfgTRES={configured_tres}",
    "AllocTRES={allocated_tres}",
    "CurrentWatts=0 AveWatts=0",
    "",
    "<Reason={reason} [{reason_user}@{reason_time:time}]>",
    "<Comment={comment}>",
    "<Extra={extra}>",
    "<ReservationName={reservation}>",
)

PARTITION = (
    "PartitionName={name}",
    "AllowGroups={allowed_groups|ALL} {account_rule} {qos_rule}",
    "AllocNodes={submit_hosts|ALL} Default={is_default:yes} QoS={qos|N/A}",
    "DefaultTime={default_time:limit|NONE} DisableRootJobs={no_root_jobs:yes}"
    " ExclusiveUser={exclusive_user:yes} ExclusiveTopo=NO GraceTime={grace_seconds}"
    " Hidden={is_hidden:yes}",
    "MaxNodes={max_nodes|UNLIMITED} MaxTime={max_time:duration|UNLIMITED} MinNodes={min_nodes}"
    " LLN={least_loaded:yes} MaxCPUsPerNode={max_cpus_per_node|UNLIMITED}"
    " MaxCPUsPerSocket=UNLIMITED",
    "Nodes={nodes}",
    "PriorityJobFactor={factor} PriorityTier={tier} RootOnly={root_only:yes}"
    " ReqResv={needs_reservation:yes} OverSubscribe={sharing}",
    "OverTimeLimit=NONE PreemptMode={preempt_mode}",
    "State={state} TotalCPUs={total_cpus} TotalNodes={total_nodes} SelectTypeParameters=NONE",
    "JobDefaults=(null)",
    "{memory} {max_memory}",
    "TRES={tres}",
    "<TRESBillingWeights={weights}>",
)

STEP = (
    "StepId={label} UserId={uid} StartTime={started:time|Unknown} TimeLimit=UNLIMITED",
    "State=RUNNING Partition={partition} NodeList={nodes}",
    "Nodes={node_count} CPUs={cpus} Tasks={tasks} Name={name} Network=(null)",
    "TRES={tres}",
    "ResvPorts=(null)",
    "CPUFreqReq=Default< Dist={distribution}>",
    "SrunHost:Pid={srun_host}:{srun_pid}",
)

RESERVATION = (
    "ReservationName={name} StartTime={start:time} EndTime={end:time} Duration={seconds:duration}",
    "Nodes={nodes} NodeCnt={node_count} CoreCnt={cores} Features={features}"
    " PartitionName={partition} Flags={flags}",
    "TRES={tres}",
    "Users={users} Groups={groups} Accounts={accounts} Licenses={licenses} State={state}"
    " BurstBuffer=(null)",
    "MaxStartDelay=(null)",
)


def show(
    row: Any,
    template: Sequence[str],
    notation: Notation,
    *,
    is_one_line: bool = False,
    has_details: bool = False,
) -> str:
    """Return the text of a row, with its line ends.

    The template is JOB, NODE, PARTITION, STEP or RESERVATION.
    """
    lines = _lines(row, template, notation, has_details=has_details)
    return (" " if is_one_line else "\n   ").join(lines) + ("\n" if is_one_line else "\n\n")


def _lines(
    row: Any, template: Sequence[str], notation: Notation, *, has_details: bool
) -> Iterator[str]:
    for line in template:
        if line == _SHARES:
            shares = row.shares if has_details else ()
            yield from (_filled(share, _SHARE, notation) for share in shares)
        elif has_details or not line.startswith("?"):
            filled = _filled(row, line.removeprefix("?"), notation)
            if filled or not line:
                yield filled


class _Part(NamedTuple):
    """Part of a line: a text with %s for each value, and the values: field, writer and word."""

    text: str
    is_optional: bool
    values: tuple[tuple[str, Writer, str | None], ...]


_PART = re.compile(r"<([^>]*)>|([^<]+)")
_VALUE = re.compile(r"\{(\w+)(?::(\w+))?(?:\|([^}]*))?\}")


@lru_cache(maxsize=256)
def _parts(line: str) -> tuple[_Part, ...]:
    return tuple(
        _Part(
            _VALUE.sub("%s", match[1] or match[2]),
            match[1] is not None,
            tuple(
                (value[1], WRITERS[value[2] or ""], value[3])
                for value in _VALUE.finditer(match[1] or match[2])
            ),
        )
        for match in _PART.finditer(line)
    )


def fields_in(template: Sequence[str]) -> list[str]:
    """Return the fields of a row that a template shows."""
    return [value[1] for line in template for value in _VALUE.finditer(line)]


def _filled(row: Any, line: str, notation: Notation) -> str:
    """Return a line with the values of a row."""
    filled = ""
    for part in _parts(line):
        values = [(getattr(row, field), write, word) for field, write, word in part.values]
        if part.is_optional and any(value is None and word is None for value, _, word in values):
            continue
        filled += part.text % tuple(
            (NULL if word is None else word) if value is None else write(value, notation)
            for value, write, word in values
        )
    return filled
