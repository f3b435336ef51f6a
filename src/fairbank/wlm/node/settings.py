"""Settings of the node daemon, as the program that starts it writes them: a file in JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from fairbank.core.errors import InvalidInput
from fairbank.core.os_errors import translate_os_error
from fairbank.wlm.protocol.messages import Seconds

Count = Annotated[int, msgspec.Meta(ge=1)]


class HostedNode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Node that the daemon serves: its name, its spool directory with mode 0700, and its socket.

    CPUs and memory in MiB are its part of the host, see `host_cpus`; None: all that the host has.
    `gpus` are the types of its GPUs by their numbers; empty: of any type.
    """

    name: str
    spool: str
    socket: str
    cpus: Count | None = None
    memory: Count | None = None
    gpus: tuple[str, ...] = ()


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings by the meaning of slurm.conf: Prolog, Epilog, PrologTimeout, EpilogTimeout,
    KillWait, UnkillableStepTimeout, UnkillableStepProgram, TaskProlog, TaskEpilog,
    JobAcctGatherFrequency, SlurmdDebug and SlurmdSyslogDebug. Without
    `control_groups`, none are made even if the daemon may do so. `host_cpus` and `host_memory` are
    what the host had when the parts of the nodes were chosen; None: the parts are as written.
    `over_memory_kill`: what uses more memory than its job has is killed (JobAcctGatherParams).
    `host_gpus` is how many GPUs the host had: if it has fewer, a node has only those that are left.
    They are looked for in `gpu_root`, which has dev, proc and sys.
    """

    nodes: Annotated[tuple[HostedNode, ...], msgspec.Meta(min_length=1)]
    prolog: str = ""
    epilog: str = ""
    prolog_timeout: Seconds = 300.0
    epilog_timeout: Seconds = 300.0
    kill_wait: Seconds = 30.0
    unkillable_timeout: Seconds = 60.0
    unkillable_program: str = ""
    task_prolog: str = ""
    task_epilog: str = ""
    control_groups: bool = True
    host_cpus: Count | None = None
    host_memory: Count | None = None
    host_gpus: int = 0
    gpu_root: str = "/"
    debug: str = "info"
    syslog_debug: str = "quiet"
    over_memory_kill: bool = False
    sample_seconds: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = 30.0


def read_settings(path: Path) -> NodeSettings:
    """Read the settings. Raises FairbankError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=NodeSettings)
    except OSError as error:
        raise translate_os_error(error, f"cannot read {path}") from error
    except msgspec.DecodeError as error:
        remedy = "write them again: fairbank cluster up"
        raise InvalidInput(f"{path} has no settings of a node: {error}", remedy=remedy) from error
