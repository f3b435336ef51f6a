"""Binding of tasks to CPUs, as --cpu-bind of srun requests it. Source: srun(1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from fairbank.core.errors import InvalidInput

BindingKind = Literal["own", "none", "map_cpu", "mask_cpu"]
_WORDS = {"q": False, "quiet": False, "v": True, "verbose": True}
_KINDS: dict[str, BindingKind] = {
    "cores": "own", "threads": "own", "rank": "own", "no": "none", "none": "none",
    "map_cpu": "map_cpu", "mask_cpu": "mask_cpu",
}  # fmt: skip
_ELEMENT = re.compile(r"(0x[0-9a-f]{1,64}|[0-9a-f]{1,64})(?:\*([1-9]\d{0,3}))?", re.IGNORECASE)
_LIST_MAX = 10_000
_HELP = (
    "none, cores, threads, rank, map_cpu:LIST or mask_cpu:LIST, after verbose, or quiet, if wanted"
)


class CpuBinding(NamedTuple):
    """Binding of tasks to CPUs.

    Attributes:
        kind: `own`: each task has its part of the CPUs of the step; `none`: all of them;
            `map_cpu` and `mask_cpu`: those of the list.
        elements: numbers or masks of CPUs for one task after the other, again from the first.
        is_verbose: whether each task says where it is bound.
    """

    kind: BindingKind = "own"
    elements: tuple[int, ...] = ()
    is_verbose: bool = False

    def cpus_of(self, local: int, own: Sequence[int], cpus: Sequence[int]) -> Sequence[int]:
        """Return the CPUs of a task.

        Args:
            local: its number on its node.
            own: its part of the CPUs of the step.
            cpus: CPUs of the step on the node. A task that is to have none of them has all.
        """
        if self.kind == "own":
            return own
        if self.kind == "none":
            return cpus
        element = self.elements[local % len(self.elements)]
        mask = element if self.kind == "mask_cpu" else 1 << element
        return [cpu for cpu in cpus if mask >> cpu & 1] or cpus


def parse_binding(text: str, *, field: str) -> CpuBinding:
    """Return the binding of `verbose,map_cpu:0,2` and its like. Raises InvalidInput."""
    first, has_more, rest = text.lower().partition(",")
    is_verbose = _WORDS.get(first, False)
    if first not in _WORDS:
        rest = text.lower()
    elif not has_more:
        return CpuBinding(is_verbose=is_verbose)
    name, _, listed = rest.partition(":")
    kind = _KINDS.get(name)
    if kind is None or bool(listed) != (kind in ("map_cpu", "mask_cpu")):
        raise InvalidInput(f"{text[:40]!a} is no binding to CPUs", field=field, remedy=_HELP)
    elements: list[int] = []
    for word in listed.split(",") if listed else ():
        match = _ELEMENT.fullmatch(word)
        base = 16 if kind == "mask_cpu" or word.startswith("0x") else 10
        try:
            number = int(match[1], base) if match else -1
        except ValueError:
            number = -1
        is_bad = number < 0 or (kind == "map_cpu" and number >= _LIST_MAX)
        if match is None or is_bad or len(elements) + int(match[2] or 1) > _LIST_MAX:
            what = f"{word[:40]!a} is no number of a CPU"
            raise InvalidInput(what, field=field, remedy="write map_cpu:0,2 or mask_cpu:0x3,0xc")
        elements += [number] * int(match[2] or 1)
    return CpuBinding(kind, tuple(elements), is_verbose)
