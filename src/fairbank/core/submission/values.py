"""Readers of option values: counts, sizes, time limits, signals, mail types and single words.

A reader takes the text and the name of the option. It raises InvalidInput with that name. What
depends on a clock, a file or the cluster stays text: times of day, hosts, features, licenses.

Readers of rare options import their parsers themselves: srun is often started, and without them in
a quarter less of processor time.
"""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.gres import Gres, parse_gpus, parse_gres
from fairbank.core.slurm_numbers import NICE_MAX, PRIORITY_MAX, parse_memory

if TYPE_CHECKING:
    from fairbank.core.submission.arrays import ArrayTasks
    from fairbank.core.submission.dependencies import DependencyExpression
    from fairbank.core.submission.task_cpus import CpuBinding
    from fairbank.core.submission.task_gpus import GpuBinding

Reader = Callable[[str, str], object]

COUNT_MAX = 10**9 - 1
MEMORY_MAX = 2**31 - 1
"""Largest size of memory, in MiB."""
TIME_MAX = 2**31 - 60
"""Longest time limit, in seconds. Slurm rounds up to minutes in 32 bits: more becomes negative."""
_SIGNAL_MAX = 64  # of Linux
_DIGITS = re.compile(r"\d+", re.ASCII)
_NODES = re.compile(r"(\d{1,9})([km]?)(?:-(\d{1,9})([km]?))?", re.ASCII | re.IGNORECASE)
_NODE_FACTORS = {"": 1, "k": 1024, "m": 1024**2}
_UNLIMITED = re.compile(r"-1|unlimited|infinite|[0:-]*0", re.IGNORECASE)
_SIGNED = re.compile(r"[+-]?\d{1,10}", re.ASCII)
_LICENSE = re.compile(r"([^\s,:@|=]{1,64})(?::([1-9]\d{0,8}))?", re.ASCII)
_SIGNAL = re.compile(r"(?i)([RB]{0,2}):?(?:SIG)?([A-Z]+[12]?|[0-9]{1,3})(?:@([0-9]{1,5}))?")
_SIGNAL_NUMBERS = {
    "HUP": 1, "INT": 2, "QUIT": 3, "ABRT": 6, "KILL": 9, "USR1": 10, "USR2": 12, "ALRM": 14,
    "TERM": 15, "CONT": 18, "STOP": 19, "TSTP": 20, "TTIN": 21, "TTOU": 22, "URG": 23, "XCPU": 24,
}  # fmt: skip
"""Signals that Slurm knows by name, with Linux' numbers."""

_MAIL_ALL = ("BEGIN", "END", "FAIL", "REQUEUE", "INVALID_DEPEND", "STAGE_OUT")
_MAIL_TYPES = frozenset(
    {*_MAIL_ALL, "ARRAY_TASKS", "TIME_LIMIT", "TIME_LIMIT_90", "TIME_LIMIT_80", "TIME_LIMIT_50"}
)
RESOURCE_LIMITS = "AS CORE CPU DATA FSIZE MEMLOCK NOFILE NPROC RSS STACK".split()
"""Limits that a job may take over from its submitter, as in setrlimit(2) without RLIMIT_."""


class TaskLayout(NamedTuple):
    """Tasks of a job with their memory, as options request them.

    `exclusive` requests whole nodes. `memory` is one of `mem`, `mem_per_cpu` and `mem_per_gpu`,
    such as 16G, or empty. `tasks` is None if only the CPUs of the job are known.
    """

    exclusive: bool = False
    memory: Mapping[str, str] = {}
    tasks: int | None = None
    tasks_per_node: int | None = None
    cpus_per_task: int = 1


class NodeRange(NamedTuple):
    """Number of nodes of a job: `least` at least, and at most `most`; None: no limit."""

    least: int
    most: int | None


class WarningSignal(NamedTuple):
    """Signal before the time limit: its number, and its lead time.

    `to_script` sends it to the batch script instead of its steps (B). `for_reservation` also sends
    it before the start of a reservation whose nodes the job uses (R).
    """

    number: int
    seconds: int = 60
    to_script: bool = False
    for_reservation: bool = False


def as_written(text: str, field: str) -> str:
    """Return the text."""
    return text


def flag(text: str, field: str) -> bool:
    """Return True for an option that takes no value."""
    if text:
        raise InvalidInput(
            f"{text[:40]!a} is one value too many", field=field, remedy=f"write only {field}"
        )
    return True


def count(text: str, field: str) -> int:
    """Return a whole number from 1 on."""
    if _DIGITS.fullmatch(text) and len(text) > len(str(COUNT_MAX)):
        what = f"{text[:40]} is more than any cluster has"
        raise InvalidInput(what, field=field, remedy=f"at most {COUNT_MAX}")
    if _DIGITS.fullmatch(text) is None or int(text) == 0:
        raise InvalidInput(
            f"{text[:40]!r} is not a whole number from 1 on",
            field=field,
            remedy="write a number such as 4",
        )
    return int(text)


def nodes(text: str, field: str) -> NodeRange:
    """Return the nodes of `4`, `2-8`, `1k` or `1,4,8-16:4`, whose lowest and highest count.

    `2-0` has no upper end.
    """
    if "," in text or ":" in text:
        from fairbank.core.submission.arrays import parse_ranges

        sizes = parse_ranges(text)
        if sizes is None:
            what = f"{text[:40]!a} is not a number of nodes"
            raise InvalidInput(what, field=field, remedy="write 4, 2-8 or 1,4,8-16:4")
        least = min(part[0] for part in sizes)
        return NodeRange(count(str(least), field), max(part[-1] for part in sizes))
    match = _NODES.fullmatch(text)
    if match is None:
        only = count(text, field)  # which raises
        return NodeRange(only, only)
    least = count(match[1], field) * _NODE_FACTORS[match[2].lower()]
    most = least if match[3] is None else int(match[3]) * _NODE_FACTORS[match[4].lower()]
    if 0 < most < least:
        what = f"at most {most} nodes are fewer than at least {least}"
        raise InvalidInput(what, field=field, remedy=f"{least} or more")
    return NodeRange(least, most or None)


def memory(text: str, field: str) -> int:
    """Return a size in MiB."""
    size = parse_memory(text, field=field)
    if size > MEMORY_MAX:
        what = f"{text[:40]!a} is more than any node has"
        raise InvalidInput(what, field=field, remedy=f"at most {MEMORY_MAX}M")
    return size


def time_limit(text: str, field: str) -> int | None:
    """Return a time limit in seconds; None for 0 or UNLIMITED, a job without a limit of its own."""
    if _UNLIMITED.fullmatch(text):
        return None
    from fairbank.core.time import parse_duration

    seconds = parse_duration(text, field=field)
    if seconds > TIME_MAX:
        what = f"{text[:40]!a} is longer than any time limit"
        raise InvalidInput(what, field=field, remedy="write UNLIMITED for a job without a limit")
    return seconds


def array(text: str, field: str) -> "ArrayTasks | None":
    """Return the tasks of an array; None for an empty text, a job that is none."""
    from fairbank.core.submission.arrays import parse_array

    return parse_array(text, field=field) if text else None


def dependencies(text: str, field: str) -> "DependencyExpression":
    """Return the dependencies on other jobs."""
    from fairbank.core.submission.dependencies import parse_dependencies

    return parse_dependencies(text, field=field)


def cpu_binding(text: str, field: str) -> "CpuBinding":
    """Return the binding of tasks to CPUs."""
    from fairbank.core.submission.task_cpus import parse_binding

    return parse_binding(text, field=field)


def gpu_binding(text: str, field: str) -> "GpuBinding":
    """Return the binding of tasks to GPUs."""
    from fairbank.core.submission.task_gpus import parse_binding

    return parse_binding(text, field=field)


def gpus(text: str, field: str) -> list[Gres]:
    """Return the GPUs of `2` or `a100:2,t4:1`."""
    return parse_gpus(text, field=field)


def gres(text: str, field: str) -> list[Gres]:
    """Return generic resources; `none` are none."""
    return [] if text == "none" else parse_gres(text, field=field)


def whole_nodes(text: str, field: str) -> str:
    """Return the value of --exclusive: `exclusive` for whole nodes, or who else may share them."""
    sharing = word(text, field, "exclusive allocation user mcs topo oversubscribe")
    return "exclusive" if sharing == "allocation" else sharing


class Distribution(NamedTuple):
    """Distribution of tasks over nodes: block, cyclic, plane or arbitrary. Of a plane, `together`
    tasks stay on one node.
    """

    kind: str
    together: int = 1


def distribution(text: str, field: str) -> Distribution:
    """Return the distribution over nodes; what follows a colon or a comma is about sockets."""
    kind, has_size, size = re.split("[:,]", text.lower(), maxsplit=1)[0].partition("=")
    if kind == "plane":
        return Distribution(kind, count(size, field) if has_size else 1)
    accepted = "block cyclic arbitrary plane=SIZE"
    return Distribution(word("block" if kind == "*" else kind, field, accepted))


def yes_or_no(text: str, field: str) -> bool:
    """Return True for yes."""
    return word(text, field, "yes no") == "yes"


def zero_or_one(text: str, field: str) -> bool:
    """Return True for 1."""
    return word(text, field, "0 1") == "1"


def unless_off(text: str, field: str) -> bool:
    """Return True unless the option is switched off."""
    return word(text, field, "set off no") == "set"


def open_mode(text: str, field: str) -> str:
    """Return `append` or `truncate`, of which the first letter is enough."""
    modes = {"a": "append", "t": "truncate"}
    return modes.get(text[:1].lower()) or word(text, field, " ".join(modes.values()))


def whole(text: str, field: str) -> int:
    """Return a whole number from 0 on."""
    return _integer(text, field, 0, COUNT_MAX)


def priority(text: str, field: str) -> int:
    """Return a priority; TOP is the highest."""
    return PRIORITY_MAX - 2 if text.upper() == "TOP" else _integer(text, field, 0, PRIORITY_MAX - 2)


def nice(text: str, field: str) -> int:
    """Return a nice value. Unlike sbatch, which reads what is no number as 0."""
    return _integer(text, field, -NICE_MAX, NICE_MAX)


def signal(text: str, field: str) -> WarningSignal:
    """Return the signal of `[R][B][:]SIGNAL[@SECONDS]`.

    R and B belong to the prefix even without a colon, so that BUS must be written as a number.
    """
    match = _SIGNAL.fullmatch(text)
    name = match[2].upper() if match else ""
    number = _SIGNAL_NUMBERS.get(name, int(name) if name.isdigit() else 0)
    seconds = int(match[3] or 60) if match else 0
    if match is None or not 0 < number <= _SIGNAL_MAX or seconds > 65_535:
        raise InvalidInput(
            f"{text[:40]!a} is not a signal",
            field=field,
            remedy="write its name or number, and how many seconds before the limit: B:USR1@300",
        )
    prefix = match[1].upper()
    return WarningSignal(number, seconds, "B" in prefix, "R" in prefix)


def licenses(text: str, field: str) -> dict[str, int]:
    """Return the number of each license of `matlab:2,ansys`."""
    matches = [_LICENSE.fullmatch(part) for part in text.split(",")]
    counts = {match[1]: int(match[2] or 1) for match in matches if match is not None}
    if len(counts) < len(matches):
        what = f"{text[:40]!a} is not a list of different licenses"
        raise InvalidInput(what, field=field, remedy="write for example matlab:2,ansys")
    return counts


def mail_types(text: str, field: str) -> frozenset[str]:
    """Return the events of which mail is sent; NONE among them: none.

    ALL are those that concern every job. Unknown words are ignored beside known ones.
    """
    words = frozenset(text.upper().split(","))
    known = words & _MAIL_TYPES | (frozenset(_MAIL_ALL) if "ALL" in words else frozenset())
    if "NONE" in words:
        return frozenset()
    if not known:
        word(text, field, " ".join(["NONE", "ALL", *sorted(_MAIL_TYPES)]))
    return known


def resource_limits(text: str, field: str) -> frozenset[str]:
    """Return the limits of setrlimit(2) that the job takes over from its submitter."""
    names = [name.upper() for name in text.split(",")]
    for name in names:
        word(name, field, " ".join(["ALL", "NONE", *RESOURCE_LIMITS]))
    return frozenset(RESOURCE_LIMITS if "ALL" in names else set(names) - {"NONE"})


def hints(text: str, field: str) -> str:
    """Return the hints for the binding of tasks, as written."""
    for name in text.split(","):
        word(name, field, "compute_bound memory_bound multithread nomultithread")
    return text


def word(text: str, field: str, accepted: str) -> str:
    """Return the word in the form in which it is accepted, whatever its case."""
    for one in accepted.split():
        if one.lower() == text.lower():
            return one
    raise InvalidInput(
        f"{text[:40]!a} is unknown", field=field, remedy=f"one of {accepted.replace(' ', ', ')}"
    )


def _integer(text: str, field: str, low: int, high: int) -> int:
    if _SIGNED.fullmatch(text) and low <= int(text) <= high:
        return int(text)
    raise InvalidInput(
        f"{text[:40]!a} is not a whole number from {low} to {high}",
        field=field,
        remedy="give a number in this range",
    )
