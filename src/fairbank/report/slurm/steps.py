"""Steps with all that squeue --steps and scontrol show step print of them."""

from typing import NamedTuple

from fairbank.report.slurm.layout import SlurmColumn, table
from fairbank.report.slurm.notation import (
    NOT_APPLICABLE,
    NULL,
    UNLIMITED,
    Notation,
    Uncut,
    constant,
    else_word,
    queue_clock,
    time,
)

BATCH = "batch"
"""Step of the batch script."""
FORMAT = "%.15i %.8j %.9P %.8u %.9M %N"
UNKNOWN_COLUMN = "Invalid job step format specification: {}"
"""Error of squeue, which goes on without the column."""
NO_STEPS = "No job steps in the system"


class StepLine(NamedTuple):
    """Step that runs: `batch`, or its number.

    `job` is its job as squeue names it, such as `12_1`. `tres` and the distribution are None for
    that of the batch script. `srun_host` and `srun_pid` are the host and the process of srun; None
    and 0: there is none.
    """

    job_id: int
    job: str = ""
    array_job: int | None = None
    task: int | None = None
    step: str = BATCH
    name: str = BATCH
    user: str = ""
    uid: int = 0
    partition: str = ""
    started: int | None = None
    elapsed: int = 0
    nodes: str = ""
    node_count: int = 1
    cpus: int = 0
    tasks: int = 1
    tres: str | None = None
    distribution: str | None = None
    srun_host: str | None = None
    srun_pid: int = 0

    @property
    def label(self) -> str:
        """Name of the step, such as `12_1.0`."""
        return f"{self.job}.{self.step}"

    @property
    def array_number(self) -> int:
        """Number of the array, or 0."""
        return self.array_job or 0

    @property
    def place(self) -> tuple[int, int, int]:
        """Place in squeue: after its job; the batch script is last."""
        number = int(self.step) if self.step.isdigit() else 2**32
        return self.array_job or self.job_id, -1 if self.task is None else self.task, number


def _used(seconds: int, notation: Notation) -> str:
    return Uncut(queue_clock(seconds, notation))


def _hosts(nodes: str, notation: Notation) -> str:
    return Uncut(nodes)


def _absent(name: str, head: str, word: str = NULL, letter: str = "") -> SlurmColumn:
    """Return a column that has the same text for every step."""
    return SlurmColumn(name, "job_id", constant(word), head, letter)


COLUMNS = table(
    SlurmColumn("ArrayJobId", "array_number", head="ARRAY_JOB_ID"),
    SlurmColumn("ArrayTaskId", "task", else_word(NOT_APPLICABLE), "ARRAY_TASK_ID"),
    _absent("Gres", "TRES_PER_JOB", letter="b"),
    SlurmColumn("JobId", "job_id", head="JOBID"),
    _absent("Network", "NETWORK"),
    SlurmColumn("Nodes", "nodes", _hosts, Uncut("NODELIST"), "N"),
    SlurmColumn("NumCPUs", "cpus", head="CPUS"),
    SlurmColumn("NumTasks", "tasks", head="TASKS", letter="A"),
    SlurmColumn("Partition", "partition", head="PARTITION", letter="P"),
    _absent("ResvPorts", "RESV_PORTS"),
    SlurmColumn("StartTime", "started", else_word(NOT_APPLICABLE, time), "START_TIME", "S"),
    SlurmColumn("StepId", "label", head="STEPID", letter="i"),
    SlurmColumn("StepName", "name", head="NAME", letter="j"),
    _absent("StepState", "STATE", "RUNNING"),
    _absent("TimeLimit", "TIME_LIMIT", UNLIMITED, "l"),
    SlurmColumn("TimeUsed", "elapsed", _used, "TIME", "M"),
    SlurmColumn("UserId", "uid", head="UID", letter="U"),
    SlurmColumn("UserName", "user", head="USER", letter="u"),
)
"""By the names that --Format takes in any case."""
