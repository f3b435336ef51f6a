"""Submissions: options of sbatch and srun as texts become the request that the core accepts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

from fairbank.cluster.node import Gpus
from fairbank.cluster.resource_request import ALL_MEMORY, ResourceRequest
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.gres import Gres
from fairbank.core.hostlist import expand
from fairbank.core.submission.file_patterns import expand_pattern
from fairbank.core.submission.gpus import requested_gpus
from fairbank.core.submission.options import read_values
from fairbank.core.submission.resources import (
    cpus_per_task,
    node_range,
    requested_tasks,
    required_hosts,
)
from fairbank.core.submission.script import check_script
from fairbank.core.submission.support import check_supported
from fairbank.core.submission.values import RESOURCE_LIMITS
from fairbank.core.time import LIMIT_MAX_SECONDS, parse_moment
from fairbank.priority.associations import own_association
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement import constraint
from fairbank.wlm.controller.job_owners import process_owner
from fairbank.wlm.core.accounts import DEFAULT_QOS
from fairbank.wlm.core.events import Caller, SubmitJob
from fairbank.wlm.core.jobs import Submission
from fairbank.wlm.core.settings import WlmSettings
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.protocol.commands import SubmitRequest

_WORDS_MAX = 2 * 1024 * 1024
"""Bytes of the environment and the arguments together, as execve(2) takes them by default."""
_TEXT_MAX = 4_096
"""Characters of an option, as of a path: a page of rows has up to 1,000 of each."""
_LISTS = frozenset({"array", "dependency", "exclude", "nodelist", "wrap"})
_WORD_MAX = 128 * 1024
"""Bytes of one argument or variable (MAX_ARG_STRLEN)."""


class Submitter(NamedTuple):
    """User who submits a job, with their group, the names of all their groups, and the process."""

    caller: Caller
    gid: int
    groups: tuple[str, ...] = ()
    pid: int = 0


class StoredFiles(NamedTuple):
    """Digests of the script and of the environment."""

    script: str
    environment: str


def build_submission(
    request: SubmitRequest, submitter: Submitter, files: StoredFiles, state: CoreState, now: int
) -> SubmitJob:
    """Return the request for the core; `now` is in seconds since 1970.

    Raises FairbankError if an option has a bad value, is not supported, or names something unknown.
    """
    _check_content(request, state.settings)
    check_supported(request.options)
    values = read_values(request.options, request.command)
    _check_names(values, state)
    submission = _submission(request, values, submitter, files, state.settings)
    array = values.get("array")
    _check_patterns(submission)
    return SubmitJob(
        job=_pending_job(request, values, submitter, state, now),
        submission=submission,
        array=array,
        dependencies=values.get("dependency"),
        held="hold" in values,
        test_only="test-only" in values,
        owner=None if request.script or "no-shell" in values else process_owner(submitter.pid),
    )


def resource_request(values: Mapping[str, Any]) -> ResourceRequest:
    """Return the resources of a job. Raises InvalidInput if they contradict each other."""
    nodes, tasks, per_node = node_range(values), requested_tasks(values), None
    # Tasks that share CPUs count as one for each node (--overcommit).
    if "overcommit" in values:
        tasks = None
    else:
        per_node = values.get("ntasks-per-node")
        tasks = tasks or (nodes.least * per_node if per_node else None)
    of_task, of_node = cpus_per_task(values), values.get("mincpus", 1)
    if tasks and per_node:
        # Each node runs the tasks that the others have no place for.
        of_node = max(of_node, of_task * (tasks - per_node * (nodes.least - 1)))
    memory, per_cpu, per_gpu = map(values.get, ("mem", "mem-per-cpu", "mem-per-gpu"))
    gpus = requested_gpus(values)
    per_task, total = as_gpus(gpus.per_task), as_gpus(filter(None, [gpus.total]))
    if gpus.tasks_each is not None and total:
        # So the tasks of a GPU are together, on whichever nodes.
        per_task, total = (total[0]._replace(number=1),), ()
    elif gpus.tasks_each is not None:
        per_node = gpus.tasks_each * sum(gres.number for gres in gpus.per_node or ())
    sharing = values.get("exclusive")
    for name in ("constraint", "prefer"):
        constraint.parse(values.get(name, ""), f"--{name}")
    return ResourceRequest(
        nodes=nodes.least,
        max_nodes=nodes.most,
        tasks=tasks,
        tasks_per_node=per_node,
        cpus_per_task=of_task,
        cpus_per_node=of_node,
        memory_per_node=ALL_MEMORY if 0 in (per_cpu, per_gpu) else memory,
        memory_per_cpu=per_cpu or None,
        gpus=as_gpus(gpus.per_node or ()),
        gpus_per_task=per_task,
        total_gpus=next(iter(total), None),
        tasks_per_gpu=gpus.tasks_each,
        cpus_per_gpu=values.get("cpus-per-gpu"),
        memory_per_gpu=per_gpu or None,
        tmp=values.get("tmp", 0),
        constraint=values.get("constraint", ""),
        prefer=values.get("prefer", ""),
        contiguous="contiguous" in values,
        exclusive=sharing == "exclusive",
        shared=sharing == "oversubscribe" or "oversubscribe" in values,
        required=required_hosts(values),
        excluded=tuple(dict.fromkeys(expand(values.get("exclude", ""), field="--exclude"))),
    )


def as_gpus(listed: Iterable[Gres]) -> tuple[Gpus, ...]:
    return tuple(Gpus(gres.type, gres.number) for gres in listed)


def _pending_job(
    request: SubmitRequest,
    values: Mapping[str, Any],
    submitter: Submitter,
    state: CoreState,
    now: int,
) -> PendingJob:
    partitions = tuple(filter(None, values.get("partition", "").split(",")))
    user = submitter.caller.name
    account = values.get("account") or _default_account(user, state)
    usable = own_association(
        state.accounts.allowed_qos, account, user, partitions[0] if partitions else ""
    ) or ("",)
    qos = known_qos(values.get("qos", ""), state, "--qos") or usable[0]
    times = {
        name: parse_moment(values[name], now, state.settings.zone, field=f"--{name}")
        for name in ("begin", "deadline")
        if name in values
    }
    if (deadline := times.get("deadline")) is not None:
        _check_deadline(deadline, max(now, times.get("begin", 0)), values)
    return PendingJob(
        number=0,
        user=user,
        account=account,
        qos=qos,
        partitions=partitions or ("",),
        wanted=resource_request(values),
        priority=values.get("priority", 0),
        eligible=times.get("begin", 0),
        # A job without a limit has the longest that there is.
        limit=values["time"] or LIMIT_MAX_SECONDS if "time" in values else None,
        time_min=values.get("time-min"),
        reservation=values.get("reservation"),
        groups=submitter.groups,
        deadline=deadline,
        licenses=values.get("licenses", {}),
        submit_host=request.host,
    )


def _check_deadline(deadline: int, earliest: int, values: Mapping[str, Any]) -> None:
    """Raise InvalidInput for a deadline that a job misses even if it starts as early as it can."""
    if deadline <= earliest:
        raise InvalidInput("the deadline is over", field="--deadline", remedy="a later time")
    option = "time-min" if "time-min" in values else "time"
    least = values.get(option, 0)
    if earliest + least > deadline:
        raise InvalidInput(
            f"the job needs {least} s (--{option}) but could run for {deadline - earliest} s only"
            " before its deadline",
            field="--time-min" if option == "time-min" else "--deadline",
            remedy=f"a later deadline, or a shorter --{option}",
        )


def _default_account(user: str, state: CoreState) -> str:
    """Return the account of the first association of a user; empty if there is none."""
    return next((row.account for row in state.accounts.shares.values() if row.user == user), "")


def _submission(
    request: SubmitRequest,
    values: Mapping[str, Any],
    submitter: Submitter,
    files: StoredFiles,
    settings: WlmSettings,
) -> Submission:
    name = PurePath(request.script_name).name
    allowed = settings.jobs.propagate_resource_limits - (
        settings.jobs.propagate_resource_limits_except
    )
    propagated = values.get("propagate", allowed)
    return Submission(
        name=values.get("job-name") or name or ("wrap" if "wrap" in values else request.command),
        uid=submitter.caller.uid,
        gid=submitter.gid,
        script=files.script,
        environment=files.environment,
        arguments=request.arguments,
        directory=str(PurePath(request.directory, values.get("chdir", ""))),
        input=values.get("input", ""),
        output=values.get("output", ""),
        error=values.get("error", ""),
        open_mode=values.get("open-mode", ""),
        may_requeue=bool(files.script)
        and "no-requeue" not in values
        and ("requeue" in values or settings.jobs.job_requeue),
        no_kill=values.get("no-kill", False),
        kill_invalid=values.get("kill-on-invalid-dep", False),
        warning=values.get("signal"),
        comment=values.get("comment", ""),
        umask=request.umask,
        limits={
            limit: soft
            for limit, soft in request.limits.items()
            if limit in propagated.intersection(RESOURCE_LIMITS)
        },
        nice=values.get("nice", 0),
        command=_command(request),
        submit_line=request.submit_line[:_TEXT_MAX],
        extra=values.get("extra", ""),
        gpu_binding=request.options.get("gpu-bind", ""),
        wckey=values.get("wckey", ""),
        mail_types=values.get("mail-type", frozenset()),
        mail_user=values.get("mail-user", ""),
    )


def _command(request: SubmitRequest) -> str:
    """Return the path of the script with its arguments; empty for --wrap and standard input."""
    script, arguments = request.script_name, request.arguments
    if not script:
        return ""
    if request.command == "srun" and arguments[:1] == (script,):
        arguments = arguments[1:]  # a program is the first argument of its script
    return " ".join((str(PurePath(request.directory, script)), *arguments))[:_TEXT_MAX]


def _check_content(request: SubmitRequest, settings: WlmSettings) -> None:
    """Raise InvalidInput for a script that is none, and for what no process can be given."""
    script, most = request.script, settings.scheduling.script_max
    if script or request.command == "sbatch" or "batch" in request.options:
        check_script(script)
    for name, text in request.options.items():
        check_text(text, f"--{name[:40]}", is_list=name in _LISTS)
    check_text(request.directory, "arguments", is_list=True)
    if len(script) > most:
        raise _too_long("the script has", len(script), most)
    check_words(request.environment, request.arguments)


def check_words(environment: bytes, arguments: Sequence[str]) -> None:
    """Raise InvalidInput for an environment and arguments that no process can be given.

    `environment` has entries NAME=value, separated by NUL.
    """
    for text in arguments:
        check_text(text, "arguments", is_list=True)
    words = [*environment.split(b"\0"), *map(os.fsencode, arguments)]
    for what, size, limit in (
        ("a variable or argument has", max(map(len, words)), _WORD_MAX),
        ("the environment and the arguments have", sum(map(len, words)), _WORDS_MAX),
    ):
        if size > limit:
            raise _too_long(what, size, limit)


def _too_long(what: str, size: int, limit: int) -> InvalidInput:
    return InvalidInput(f"{what} {size:,} bytes", field="script", remedy=f"at most {limit:,} bytes")


def check_text(text: str, field: str, *, is_list: bool = False) -> None:
    """Raise InvalidInput for a text that is too long, or that no file or process can have.

    A list may be longer.
    """
    most = _WORD_MAX if is_list else _TEXT_MAX
    if len(text) > most:
        what = f"{field} has {len(text):,} characters"
        raise InvalidInput(what, field=field, remedy=f"at most {most:,}")
    if "\0" in text:
        what = f"{text[:40]!a} has a NUL character"
        raise InvalidInput(what, field=field, remedy="take it out")


def _check_names(values: Mapping[str, Any], state: CoreState) -> None:
    """Raise an error for names that the cluster does not know, and what it does not have."""
    cluster = state.settings.cluster.cluster_name
    if values.get("clusters", cluster) != cluster:
        raise NotFound(
            f"there is no cluster {values['clusters'][:40]!a} here",
            field="--clusters",
            remedy=f"only {cluster}",
        )
    if "nodefile" in values:
        raise InvalidInput(
            "the controller reads no file of nodes", field="--nodefile", remedy="--nodelist"
        )
    threads = max((node.threads for node in state.configured.values()), default=1)
    if "hint" in values and threads > 1:
        raise InvalidInput(
            "--hint is not supported on nodes with several threads a core",
            field="--hint",
            remedy="leave it out",
        )
    check_licenses(values.get("licenses", {}), state, "--licenses")


def known_qos(name: str, state: CoreState, field: str) -> str:
    """Return the QOS of a job; empty for that of a cluster which has none. Raises NotFound."""
    known = state.settings.accounting.qos
    if not name or name in known:
        return name
    if name == DEFAULT_QOS and not known:
        return ""
    raise NotFound(
        f"there is no QOS {name[:40]!a}", field=field, remedy="sacctmgr show qos lists them"
    )


def check_licenses(counts: Mapping[str, int], state: CoreState, field: str) -> None:
    """Raise InvalidInput for licenses that the cluster does not have, or not so many."""
    known = state.settings.scheduling.licenses
    for license, count in counts.items():
        if count > known.get(license, -1):
            raise InvalidInput(
                f"the cluster does not have {count} of the license {license}",
                field=field,
                remedy="scontrol show license lists them",
            )


def _check_patterns(submission: Submission) -> None:
    """Raise InvalidInput if a file would be in another directory because of a name."""
    for name in ("input", "output", "error"):
        expand_pattern(getattr(submission, name), {"x": submission.name}, field=f"--{name}")
