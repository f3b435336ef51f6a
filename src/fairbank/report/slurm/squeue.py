"""Columns of squeue, and its formats."""

from __future__ import annotations

from fairbank.core.slurm_numbers import NO_VAL, PRIORITY_MAX
from fairbank.report.slurm.job_rows import NO_LIMIT
from fairbank.report.slurm.layout import SlurmColumn, table
from fairbank.report.slurm.notation import (
    NOT_APPLICABLE,
    NOT_SET,
    NULL,
    UNLIMITED,
    Notation,
    Uncut,
    constant,
    count,
    else_word,
    exit_code,
    flag,
    mebibytes,
    queue_clock,
    time,
)

FORMAT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
LONG_FORMAT = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
START_FORMAT = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
UNKNOWN_COLUMN = "Invalid job format specification: {}"
"""Error of squeue, which goes on without the column."""

_or_na = else_word(NOT_APPLICABLE)
_time = else_word(NOT_APPLICABLE, time)


def _used(seconds: int, notation: Notation) -> Uncut:
    return Uncut(queue_clock(seconds, notation))


def _limit(seconds: int | None, notation: Notation) -> str:
    if seconds is None:
        return NOT_SET
    return UNLIMITED if seconds == NO_LIMIT else _used(seconds, notation)


def _hosts(nodes: str | None, notation: Notation) -> str:
    return Uncut(nodes or "")


def _planned(nodes: str | None, notation: Notation) -> str:
    return Uncut(NULL if nodes is None else nodes)


def _nodes_or_reason(shown: str, notation: Notation) -> str:
    return shown if shown.startswith("(") else Uncut(shown)


def _fraction(priority: int, notation: Notation) -> str:
    return f"{priority / PRIORITY_MAX:16.14f}"


def _absent(name: str, head: str, word: str = NULL, letter: str = "") -> SlurmColumn:
    """Return a column of something that Fairbank does not have."""
    return SlurmColumn(name, "job_id", constant(word), head, letter)


COLUMNS = table(
    SlurmColumn("Account", "account", head="ACCOUNT", letter="a"),
    SlurmColumn("AccrueTime", "accrued", _time, "ACCRUE_TIME"),
    SlurmColumn("admin_comment", "admin_comment", head="ADMIN_COMMENT"),
    SlurmColumn("AllocNodes", "submit_host", head="ALLOC_NODES"),
    SlurmColumn("AllocSID", "session", head="ALLOC_SID"),
    SlurmColumn("ArrayJobId", "array_number", head="ARRAY_JOB_ID", letter="F"),
    SlurmColumn("ArrayTaskId", "task_text", _or_na, "ARRAY_TASK_ID", "K"),
    _absent("AssocId", "ASSOC_ID", "0"),
    SlurmColumn("BatchFlag", "is_batch", flag, "BATCH_FLAG"),
    SlurmColumn("BatchHost", "host", head="EXEC_HOST", letter="B"),
    _absent("BoardsPerNode", "BOARDS_PER_NODE", NOT_APPLICABLE),
    _absent("BurstBuffer", "BURST_BUFFER"),
    _absent("BurstBufferState", "BURST_BUFFER_STATE"),
    _absent("Cluster", "CLUSTER"),
    _absent("ClusterFeature", "CLUSTER_FEATURES"),
    SlurmColumn("Command", "command", head="COMMAND", letter="o"),
    SlurmColumn("Comment", "comment", head="COMMENT", letter="k"),
    _absent("Container", "CONTAINER"),
    _absent("ContainerId", "CONTAINERID"),
    SlurmColumn("Contiguous", "contiguous", flag, "CONTIGUOUS", "O"),
    _absent("Cores", "CORES_PER_SOCKET", "*", "I"),
    _absent("CoreSpec", "CORE_SPEC", NOT_APPLICABLE, "X"),
    SlurmColumn("CPUsPerTask", "cpus_per_task", _or_na, "CPUS_PER_TASK"),
    SlurmColumn("cpus-per-task", "cpus_per_task", _or_na, "CPUS_PER_TASK"),
    SlurmColumn("cpus-per-tres", "cpus_per_tres", _or_na, "CPUS_PER_TRES"),
    SlurmColumn("Deadline", "deadline", _time, "DEADLINE"),
    _absent("DelayBoot", "DELAY_BOOT", "0:00"),
    SlurmColumn("Dependency", "dependency", head="DEPENDENCY", letter="E"),
    SlurmColumn("DerivedEC", "derived_exit_code", exit_code, "DERIVED_EC"),
    SlurmColumn("EligibleTime", "eligible", _time, "ELIGIBLE_TIME"),
    SlurmColumn("EndTime", "ends", _time, "END_TIME", "e"),
    SlurmColumn("ExcNodes", "excluded_nodes", _hosts, "EXC_NODES", "x"),
    SlurmColumn("exit_code", "exit_code", exit_code, "EXIT_CODE"),
    SlurmColumn("Feature", "features", head="FEATURES", letter="f"),
    SlurmColumn("Gres", "tres_per_node", _or_na, "TRES_PER_NODE", "b"),
    SlurmColumn("GroupId", "gid", head="GROUP", letter="G"),
    SlurmColumn("GroupName", "group", head="GROUP", letter="g"),
    _absent("HetJobId", "HET_JOB_ID", NOT_APPLICABLE),
    _absent("HetJobIdSet", "HET_JOB_ID_SET", NOT_APPLICABLE),
    _absent("HetJobOffset", "HET_JOB_OFFSET", NOT_APPLICABLE),
    SlurmColumn("JobArrayID", "label", head="JOBID", letter="i"),
    SlurmColumn("JobID", "job_id", head="JOBID", letter="A"),
    SlurmColumn("LastSchedEval", "last_tried", _time, "LAST_SCHED_EVAL"),
    SlurmColumn("Licenses", "licenses", head="LICENSES", letter="W"),
    SlurmColumn("MaxCPUs", "most_cpus_or_all", head="MAX_CPUS"),
    SlurmColumn("MaxNodes", "most_nodes_or_all", head="MAX_NODES"),
    SlurmColumn("mem-per-tres", "memory_per_tres", _or_na, "MEM_PER_TRES"),
    _absent("MCSLabel", "MCSLABEL"),
    SlurmColumn("MinCPUs", "least_cpus", count, "MIN_CPUS", "c"),
    SlurmColumn("MinMemory", "least_memory", mebibytes, "MIN_MEMORY", "m"),
    SlurmColumn(
        "MinTime", "least_limit", lambda value, form: queue_clock(value or 0, form), "TIME_MIN"
    ),
    SlurmColumn("MinTmpDisk", "least_tmp", mebibytes, "MIN_TMP_DISK", "d"),
    SlurmColumn("Name", "name", head="NAME", letter="j"),
    _absent("Network", "NETWORK"),
    SlurmColumn("Nice", "nice", head="NICE", letter="y"),
    SlurmColumn("NodeList", "nodes", _hosts, Uncut("NODELIST"), "N"),
    _absent("NTPerCore", "NTASKS_PER_CORE", NOT_APPLICABLE),
    SlurmColumn("NTPerNode", "tasks_per_node", head="NTASKS_PER_NODE"),
    _absent("NTPerSocket", "NTASKS_PER_SOCKET", NOT_APPLICABLE),
    _absent("NTPerBoard", "NTASKS_PER_BOARD", "0"),
    SlurmColumn("NumCPUs", "cpus", head="CPUS", letter="C"),
    SlurmColumn("NumNodes", "node_count", head="NODES", letter="D"),
    SlurmColumn("NumTasks", "tasks", else_word(str(NO_VAL)), "TASKS"),
    SlurmColumn("OverSubscribe", "sharing", head="OVER_SUBSCRIBE", letter="h"),
    SlurmColumn("Partition", "partition", head="PARTITION", letter="P"),
    SlurmColumn("PendingTime", "waited", head="PENDING_TIME"),
    SlurmColumn("PreemptTime", "preempted", _time, "PREEMPT_TIME"),
    SlurmColumn("Prefer", "preferred_features", head="PREFER"),
    SlurmColumn("Priority", "priority", _fraction, "PRIORITY", "p"),
    SlurmColumn("PriorityLong", "priority", head="PRIORITY", letter="Q"),
    SlurmColumn("QOS", "qos", head="QOS", letter="q"),
    SlurmColumn("Reason", "shown_reason", head="REASON", letter="r"),
    SlurmColumn("ReasonList", "nodes_or_reason", _nodes_or_reason, Uncut("NODELIST(REASON)"), "R"),
    _absent("Reboot", "REBOOT", "0"),
    SlurmColumn("ReqNodes", "required_nodes", _hosts, "REQ_NODES", "n"),
    _absent("ReqSwitch", "REQ_SWITCH", "0"),
    SlurmColumn("Requeue", "requeue", flag, "REQUEUE"),
    SlurmColumn("Reservation", "reservation", head="RESERVATION", letter="v"),
    _absent("ResizeTime", "RESIZE_TIME", NOT_APPLICABLE),
    SlurmColumn("RestartCnt", "restarts", head="RESTART_COUNT"),
    SlurmColumn("SchedNodes", "planned_nodes", _planned, Uncut("SCHEDNODES"), "Y"),
    _absent("SCT", "S:C:T", "*:*:*", "z"),
    _absent("Sockets", "SOCKETS_PER_NODE", "*", "H"),
    SlurmColumn("StartTime", "started", _time, "START_TIME", "S"),
    SlurmColumn("State", "shown_state", head="STATE", letter="T"),
    SlurmColumn("StateCompact", "short_state", head="ST", letter="t"),
    SlurmColumn("StdErr", "std_err", head="STDERR"),
    SlurmColumn("StdIn", "std_in", head="STDIN"),
    SlurmColumn("StdOut", "std_out", head="STDOUT"),
    SlurmColumn("SubmitTime", "submitted", _time, "SUBMIT_TIME", "V"),
    SlurmColumn("system_comment", "system_comment", head="SYSTEM_COMMENT"),
    _absent("Threads", "THREADS_PER_CORE", "*", "J"),
    SlurmColumn("TimeLeft", "seconds_left", _limit, "TIME_LEFT", "L"),
    SlurmColumn("TimeLimit", "limit", _limit, "TIME_LIMIT", "l"),
    SlurmColumn("TimeUsed", "elapsed", _used, "TIME", "M"),
    SlurmColumn("Tres", "tres", _or_na, "TRES_ALLOC"),
    SlurmColumn("tres-alloc", "tres", _or_na, "TRES_ALLOC"),
    SlurmColumn("tres-per-job", "tres_per_job", _or_na, "TRES_PER_JOB"),
    SlurmColumn("tres-per-node", "tres_per_node", _or_na, "TRES_PER_NODE"),
    SlurmColumn("tres-per-socket", "tres_per_socket", _or_na, "TRES_PER_SOCKET"),
    SlurmColumn("tres-per-task", "tres_per_task", _or_na, "TRES_PER_TASK"),
    SlurmColumn("UserId", "uid", head="UID", letter="U"),
    SlurmColumn("UserName", "user", head="USER", letter="u"),
    _absent("Wait4Switch", "WAIT4SWITCH", "0:00"),
    SlurmColumn("WCKey", "wckey", head="WCKEY", letter="w"),
    SlurmColumn("WorkDir", "work_dir", head="WORK_DIR", letter="Z"),
)
"""By the names that --Format takes in any case."""
