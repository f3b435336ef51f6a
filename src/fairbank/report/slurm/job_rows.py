"""Jobs with all that squeue and scontrol print of them.

Instants are seconds since 1970, times seconds, sizes MiB. None stands for what is not set.
"""

from typing import NamedTuple

from fairbank.report.slurm.notation import JOB_FLAGS, JOB_STATES

NO_LIMIT = -1
"""Time limit of a job that is not limited."""

# States in which a job has no nodes to show, but a reason.
_WITH_REASON = frozenset({"PENDING", "TIMEOUT", "OUT_OF_MEMORY", "DEADLINE", "FAILED"})


class JobShare(NamedTuple):
    """Resources of a job on each of these nodes: core numbers, memory, and GRES with numbers."""

    nodes: str
    cores: str
    memory: int
    gres: str = ""


class JobLine(NamedTuple):
    """Job, or the tasks of an array that have not started, as `tasks_left`.

    `flag` is shown instead of the state. `description` replaces the reason. `limit` is NO_LIMIT
    without a limit and None for the partition's. `cpus` and `node_count` are what is requested
    until the job starts.
    """

    job_id: int
    name: str = ""
    user: str = ""
    uid: int = 0
    group: str = ""
    gid: int = 0
    account: str | None = None
    partition: str = ""
    qos: str | None = None
    priority: int = 0
    nice: int = 0
    state: str = "PENDING"
    flag: str = ""
    reason: str = "None"
    description: str = ""
    dependency: str | None = None
    array_job: int | None = None
    task: int | None = None
    tasks_left: str = ""
    throttle: int | None = None
    submitted: int | None = None
    eligible: int | None = None
    accrued: int | None = None
    started: int | None = None
    ends: int | None = None
    deadline: int | None = None
    preemptable: int | None = None
    preempted: int | None = None
    suspended: int | None = None
    seconds_before_suspension: int = 0
    last_tried: int | None = None
    scheduler: str = "Main"
    elapsed: int = 0
    waited: int = 0
    limit: int | None = None
    least_limit: int | None = None
    nodes: str = ""
    planned_nodes: str | None = None
    required_nodes: str | None = None
    excluded_nodes: str | None = None
    failed_node: str | None = None
    batch_host: str | None = None
    submit_host: str | None = None
    session: int = 0
    node_count: int = 1
    most_nodes: int = 0
    cpus: int = 1
    most_cpus: int = 0
    tasks: int | None = 1
    cpus_per_task: int | None = 1
    tasks_per_node: int = 0
    least_cpus: int = 1
    least_memory: int = 0
    memory_is_per_cpu: bool = False
    least_tmp: int = 0
    requested_tres: str | None = None
    allocated_tres: str | None = None
    cpus_per_tres: str | None = None
    memory_per_tres: str | None = None
    tres_bind: str | None = None
    tasks_per_tres: int | None = None
    tres_per_job: str | None = None
    tres_per_node: str | None = None
    tres_per_socket: str | None = None
    tres_per_task: str | None = None
    gres: str | None = None
    shares: tuple[JobShare, ...] = ()
    features: str | None = None
    preferred_features: str | None = None
    reservation: str | None = None
    licenses: str | None = None
    sharing: str = "OK"
    contiguous: bool = False
    requeue: bool = True
    restarts: int = 0
    is_batch: bool = True
    exit_code: tuple[int, int] = (0, 0)
    derived_exit_code: tuple[int, int] = (0, 0)
    command: str | None = None
    work_dir: str | None = None
    std_in: str | None = None
    std_out: str | None = None
    std_err: str | None = None
    comment: str | None = None
    admin_comment: str | None = None
    system_comment: str | None = None
    extra: str | None = None
    kill_invalid: str | None = None
    wckey: str | None = None
    mail_user: str | None = None
    mail_type: str | None = None

    @property
    def label(self) -> str:
        """Number of the job as squeue writes it: `7`, `7_3` or `7_[4-9%2]`."""
        if self.tasks_left:
            return f"{self.array_job}_[{self.tasks_left}]"
        return str(self.job_id) if self.task is None else f"{self.array_job}_{self.task}"

    @property
    def array_number(self) -> int:
        """Number of the array, or of the job that is none."""
        return self.array_job or self.job_id

    @property
    def task_text(self) -> str | None:
        """Task of the array, or those that have not started."""
        return self.tasks_left or (None if self.task is None else str(self.task))

    @property
    def shown_state(self) -> str:
        """State, or the flag that is shown instead."""
        return self.flag or self.state

    @property
    def short_state(self) -> str:
        """Short form of the state."""
        return JOB_FLAGS[self.flag] if self.flag else JOB_STATES[self.state]

    @property
    def shown_reason(self) -> str:
        """Reason, or the sentence in its place."""
        return self.description or self.reason

    @property
    def nodes_or_reason(self) -> str:
        """Nodes, or the reason in parentheses."""
        has_reason = self.state in _WITH_REASON or self.flag == "STAGE_OUT"
        if has_reason and self.flag != "COMPLETING":
            return f"({self.description or self.reason})"
        return self.nodes

    @property
    def seconds_left(self) -> int | None:
        """Rest of the time limit."""
        return self.limit if self.limit in (None, NO_LIMIT) else self.limit - self.elapsed

    @property
    def tres(self) -> str | None:
        """TRES that it has, or requests."""
        return self.allocated_tres or self.requested_tres

    @property
    def most_nodes_or_all(self) -> int:
        """Largest number of nodes."""
        return self.most_nodes or self.node_count

    @property
    def most_cpus_or_all(self) -> int:
        """Largest number of CPUs."""
        return self.most_cpus or self.cpus

    @property
    def node_range(self) -> str:
        """Number of nodes, with the largest of a pending job."""
        most = self.most_nodes if self.state == "PENDING" else 0
        return f"{min(self.node_count, most)}-{most}" if most else str(self.node_count)

    @property
    def cpu_range(self) -> str:
        """Number of CPUs, with the largest."""
        return f"{self.cpus}-{self.most_cpus}" if self.most_cpus else str(self.cpus)

    @property
    def memory_unit(self) -> str:
        """Unit of which the least memory is requested."""
        if self.memory_per_tres is not None:
            return "TRES"
        return "CPU" if self.memory_is_per_cpu else "Node"

    @property
    def host(self) -> str:
        """Host of the batch script, or of the command that waits."""
        return (self.batch_host if self.is_batch else self.submit_host) or "n/a"
