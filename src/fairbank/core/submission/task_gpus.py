"""Binding of tasks to GPUs, as --gpu-bind requests it. Source: srun(1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from fairbank.core.errors import InvalidInput

BindingKind = Literal["none", "closest", "single", "per_task", "map_gpu", "mask_gpu"]
_NUMBERED: dict[str, BindingKind] = {"single": "single", "per_task": "per_task"}
_LISTED: dict[str, BindingKind] = {
    "map_gpu": "map_gpu", "map": "map_gpu", "mask_gpu": "mask_gpu", "mask": "mask_gpu",
}  # fmt: skip
_VERBOSE = "verbose,"
_NUMBER = re.compile(r"[1-9]\d{0,3}", re.ASCII)
_ELEMENT = re.compile(r"(0x[0-9a-f]{1,64}|[0-9a-f]{1,64})(?:\*([1-9]\d{0,3}))?", re.IGNORECASE)
_LIST_MAX = 10_000
_HELP = "closest, none, single:N, per_task:N, map_gpu:LIST or mask_gpu:LIST, also after verbose,"


class GpuBinding(NamedTuple):
    """Binding of tasks to GPUs.

    Attributes:
        kind: `none` and `closest`: all GPUs of the step, since it is not known which CPUs a GPU is
            close to; `single`: one for each `number` tasks; `per_task`: `number` for each task;
            `map_gpu` and `mask_gpu`: those of the list.
        number: of tasks or of GPUs.
        elements: numbers or masks of GPUs for one task after the other, again from the first.
        is_verbose: whether each task says which it has.
    """

    kind: BindingKind = "none"
    number: int = 1
    elements: tuple[int, ...] = ()
    is_verbose: bool = False

    def gpus_of(self, local: int, gpus: Sequence[int], *, is_relative: bool) -> Sequence[int]:
        """Return the GPUs of a task. A task that is to have none has the first of the step.

        Args:
            local: its number on its node.
            gpus: GPUs of the step on the node.
            is_relative: a list counts the GPUs of the step; else, those of the node.
        """
        own: Sequence[int] = gpus
        if self.kind == "single":
            # More tasks than there is place for go round the GPUs.
            place = local // self.number
            own = gpus[place : place + 1] or gpus[local % max(len(gpus), 1) :][:1]
        elif self.kind == "per_task":
            own = gpus[local * self.number : (local + 1) * self.number]
        elif self.elements:
            element = self.elements[local % len(self.elements)]
            mask = element if self.kind == "mask_gpu" else 1 << element
            own = [gpu for at, gpu in enumerate(gpus) if mask >> (at if is_relative else gpu) & 1]
        return own or gpus[:1]


def parse_binding(text: str, *, field: str) -> GpuBinding:
    """Return the binding of `verbose,map_gpu:0,2` and its like. Raises InvalidInput."""
    lowered = text.lower()
    is_verbose = lowered.startswith(_VERBOSE)
    name, _, rest = lowered.removeprefix(_VERBOSE).partition(":")
    if name in ("none", "closest") and not rest:
        return GpuBinding("none" if name == "none" else "closest", is_verbose=is_verbose)
    if (kind := _NUMBERED.get(name)) and _NUMBER.fullmatch(rest):
        return GpuBinding(kind, int(rest), is_verbose=is_verbose)
    if kind := _LISTED.get(name):
        elements = _elements(kind, rest)
        if elements is not None:
            return GpuBinding(kind, elements=elements, is_verbose=is_verbose)
    raise InvalidInput(f"{text[:40]!a} is no binding to GPUs", field=field, remedy=f"write {_HELP}")


def _elements(kind: BindingKind, text: str) -> tuple[int, ...] | None:
    """Return the numbers or masks of a list, each as often as it says; None if it is none."""
    elements: list[int] = []
    for word in text.split(","):
        match = _ELEMENT.fullmatch(word)
        digits = match[1] if match else ""
        is_mask = kind == "mask_gpu"
        if match is None or not (is_mask or digits.isdecimal()):
            return None
        number = int(digits, 16 if is_mask else 10)
        if not is_mask and number >= _LIST_MAX:
            return None
        elements += [number] * int(match[2] or 1)
        if len(elements) > _LIST_MAX:
            return None
    return tuple(elements)
