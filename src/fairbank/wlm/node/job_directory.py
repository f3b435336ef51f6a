"""Directories of runs in the spool directory: script, environment, and files of the step daemon."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fairbank.cluster.job import Run
from fairbank.core.os_errors import translate_os_error
from fairbank.wlm.node.devices.gpus import (
    JOB_GPUS,
    NO_GPUS,
    ON_NODE,
    STEP_GPUS,
    VARIABLES,
    NodeGpus,
)
from fairbank.wlm.node.memory_group import create_step_group
from fairbank.wlm.node.orphans import device_group_of, run_memory_group
from fairbank.wlm.protocol.messages import (
    StartJob,
    StartStep,
    TaskStart,
    run_directory,
    step_directory,
)
from fairbank.wlm.stepd.step import Step, StepTask, write_step

JOBS, SCRIPT, STEPS = "jobs", "slurm_script", "steps"
_OF_START = {*Step._fields} & {*StartJob.__struct_fields__} - {"arguments"}
"""Fields of a batch step that the request to start its job has."""
_OF_STEP = {*Step._fields} & {*StartStep.__struct_fields__} - {"tasks", "prologs", "epilogs"}
"""Fields of another step that the request to start it has."""


def _entries(variables: Mapping[str, str]) -> dict[bytes, bytes]:
    return {name.encode(): value.encode() for name, value in variables.items()}


def _mask(numbers: Iterable[int]) -> str:
    return hex(sum(1 << number for number in numbers)).upper().replace("X", "x")


class JobDirectories:
    """Directories of the runs on one node."""

    def __init__(
        self,
        spool: Path,
        node: str,
        gpus: NodeGpus = NO_GPUS,
        *,
        task_prolog: str = "",
        task_epilog: str = "",
    ) -> None:
        """Create the directory of all runs. Raises FairbankError.

        Args:
            spool: that of the node.
            node: its name.
            gpus: its GPUs.
            task_prolog: program that runs before each task; empty: none.
            task_epilog: program that runs after each task; empty: none.
        """
        self._spool, self._jobs, self._node = str(spool), spool / JOBS, node
        self._gpus = gpus
        self._prologs, self._epilogs = (
            [program] if program else [] for program in (task_prolog, task_epilog)
        )
        try:
            self._jobs.mkdir(mode=0o700, parents=True, exist_ok=True)
            spool.chmod(0o700)
        except OSError as error:
            raise translate_os_error(error, f"cannot create {self._jobs}", field="spool") from error

    def path(self, run: Run) -> Path:
        return Path(run_directory(self._spool, run))

    def create(
        self,
        start: StartJob,
        *,
        kill_wait: float,
        group: str = "",
        devices: str = "",
        memory_group: str = "",
    ) -> None:
        """Write the directory of a run that will start. Raises FairbankError.

        Args:
            start: the request.
            kill_wait: seconds between SIGTERM and SIGKILL.
            group: directory of its control group; empty: none.
            devices: directory of that with its devices; empty: none.
            memory_group: directory of that of its script with its memory; empty: none.
        """
        path = self.path(start.run)
        self.remove(start.run)  # of a start that was never stored
        step = Step(
            **{field: getattr(start, field) for field in _OF_START},
            arguments=[str(path / SCRIPT), *start.arguments] if start.script else start.arguments,
            kill_wait=kill_wait,
            group=group,
            devices=devices,
            memory_group=memory_group,
            title=f"JOB {start.run.job_id} ON {self._node}",
            prologs=self._prologs,
            epilogs=self._epilogs,
        )
        try:
            path.mkdir(mode=0o700)
            if start.script:
                script = path / SCRIPT
                script.write_bytes(start.script)
                script.chmod(0o700)
            # A batch script is one task on the first node of its job.
            environment = self._environment(start.environment, 0, "0")
            allowed = start.gpus if devices else None
            environment |= _entries(self._gpus.variables(JOB_GPUS, start.gpus, allowed))
            write_step(str(path), step, environment)
        except OSError as error:
            raise translate_os_error(error, f"cannot write {path}") from error

    def step_path(self, run: Run, step: int) -> Path:
        return Path(step_directory(self._spool, run, step))

    def steps(self, run: Run) -> list[int]:
        """Return the numbers of the steps of a run that have a directory."""
        try:
            return sorted(int(path.name) for path in (self.path(run) / STEPS).iterdir())
        except OSError:
            return []

    def create_step(self, start: StartStep, *, kill_wait: float, seconds: float | None) -> None:
        """Write the directory of a step that will start. Raises FairbankError.

        Args:
            start: the request.
            kill_wait: seconds between SIGTERM and SIGKILL.
            seconds: time until the time limit of its job; None: it has none.
        """
        path = self.step_path(start.run, start.step)
        devices = device_group_of(self.path(start.run))
        allowed = start.run_gpus if devices else None
        memory = create_step_group(run_memory_group(self.path(start.run)), str(start.step))
        step = Step(
            **{field: getattr(start, field) for field in _OF_STEP},
            input="",  # each task has its own files, or streams to srun
            output="",
            tasks=[self._task(task, start, allowed) for task in start.tasks],
            seconds=seconds,
            kill_wait=kill_wait,
            title=f"STEP {start.run.job_id}.{start.step} ON {self._node}",
            is_silent=start.node_index > 0,  # one line for all nodes, as in Slurm
            devices=devices,
            memory_group=memory,
            prologs=[*self._prologs, *start.prologs],
            epilogs=[*start.epilogs, *self._epilogs],
        )
        ranks = ",".join(str(task.rank) for task in start.tasks)
        environment = self._environment(start.environment, start.node_index, ranks)
        environment |= _entries(self._gpus.variables(STEP_GPUS, start.gpus, allowed))
        try:
            path.mkdir(mode=0o700, parents=True)
            write_step(str(path), step, environment)
        except OSError as error:
            shutil.rmtree(path, ignore_errors=True)
            raise translate_os_error(error, f"cannot write {path}") from error

    def _task(self, task: TaskStart, start: StartStep, allowed: Sequence[int] | None) -> StepTask:
        variables = self._gpus.variables(STEP_GPUS, task.gpus, allowed) if task.gpus else {}
        variables.pop(ON_NODE, None)  # that of all tasks
        own = [f"{name}={value}" for name, value in variables.items()]
        notice = ""
        if start.shows_gpus and task.gpus:
            visible = next(filter(None, map(variables.get, VARIABLES.values())), "")
            notice = (  # as slurmstepd writes it
                f"gpu-bind: usable_gres={_mask(task.gpus)}; bit_alloc={_mask(start.gpus)};"
                f" local_inx={len(start.gpus)}; global_list={variables[STEP_GPUS]};"
                f" local_list={visible}"
            )
        return StepTask(
            task.rank, task.arguments, task.cpus, task.input, task.output, task.error, own, notice
        )

    def _environment(
        self, entries: Iterable[bytes], node_index: int, ranks: str
    ) -> dict[bytes, bytes]:
        """Return the environment of the tasks on this node, with what only the node knows.

        Args:
            entries: NAME=value.
            node_index: number of the node in the step.
            ranks: those of its tasks here, separated by commas.
        """
        environment = {name: value for name, _, value in (one.partition(b"=") for one in entries)}
        environment.pop(b"", None)
        environment = self._gpus.clean(environment)
        environment |= {b"SLURM_NODEID": b"%d" % node_index, b"SLURM_GTIDS": ranks.encode()}
        node = self._node.encode()
        environment |= dict.fromkeys(
            (b"SLURMD_NODENAME", b"SLURM_TOPOLOGY_ADDR", b"HOSTNAME"), node
        )
        environment[b"SLURM_TOPOLOGY_ADDR_PATTERN"] = b"node"
        environment.setdefault(b"TMPDIR", b"/tmp")  # as Slurm does
        return environment

    def remove(self, run: Run) -> None:
        shutil.rmtree(self.path(run), ignore_errors=True)

    def remove_others(self, runs: Iterable[Run]) -> None:
        """Remove the directories of other runs: forgotten, or never stored."""
        known = {self.path(run) for run in runs}
        for path in set(self._jobs.iterdir()) - known:
            shutil.rmtree(path, ignore_errors=True)
