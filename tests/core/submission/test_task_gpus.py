"""Binding of tasks to GPUs: the forms of --gpu-bind, and what each task gets."""

from __future__ import annotations

import pytest

from fairbank.core.errors import InvalidInput
from fairbank.core.submission.task_gpus import parse_binding

GPUS = (2, 3, 5)


def bound(text: str, tasks: int, *, is_relative: bool = False) -> list[tuple[int, ...]]:
    binding = parse_binding(text, field="--gpu-bind")
    return [tuple(binding.gpus_of(local, GPUS, is_relative=is_relative)) for local in range(tasks)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("none", [GPUS] * 4),
        ("closest", [GPUS] * 4),
        ("verbose,closest", [GPUS] * 4),
        ("single:1", [(2,), (3,), (5,), (2,)]),  # the fourth goes round
        ("single:2", [(2,), (2,), (3,), (3,)]),
        ("per_task:1", [(2,), (3,), (5,), (2,)]),
        ("per_task:2", [(2, 3), (5,), (2,), (2,)]),
        ("map_gpu:5,3", [(5,), (3,), (5,), (3,)]),
        ("MAP_GPU:5*3,2", [(5,), (5,), (5,), (2,)]),
        ("map:3", [(3,)] * 4),
        ("map_gpu:0", [(2,)] * 4),  # not of the step, which has no 0: its first
        ("mask_gpu:0xc,20", [(2, 3), (5,), (2, 3), (5,)]),
        ("mask:0x28*2,4", [(3, 5), (3, 5), (2,), (3, 5)]),
    ],
)
def test_tasks_are_bound_in_their_order(text: str, expected: list[tuple[int, ...]]) -> None:
    assert bound(text, 4) == expected


def test_lists_count_the_gpus_of_the_step_where_it_can_open_no_others() -> None:
    assert bound("map_gpu:0,2,9", 3, is_relative=True) == [(2,), (5,), (2,)]
    assert bound("mask_gpu:6", 1, is_relative=True) == [(3, 5)]


def test_verbose_is_said_before_the_kind() -> None:
    assert parse_binding("verbose,map_gpu:0", field="").is_verbose
    assert not parse_binding("single:1", field="").is_verbose


@pytest.mark.parametrize(
    "text",
    [
        "", "near", "verbose", "verbose,", "none:1", "closest:1", "single", "single:0", "single:x",
        "per_task:", "per_task:-1", "map_gpu:", "map_gpu:a", "map_gpu:0x1", "map_gpu:1*0",
        "map_gpu:0,,1", "map_gpu:99999", "mask_gpu:g", "mask_gpu:1*", "mask_gpu:0*9999,1*9999",
    ],
)  # fmt: skip
def test_other_bindings_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is no binding to GPUs"):
        parse_binding(text, field="--gpu-bind")
