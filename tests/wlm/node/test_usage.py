"""Usage of a step: sums over its processes, and CPU seconds that never fall."""

from __future__ import annotations

import pytest

from fairbank.wlm.node.usage import final_usage, part_of, sample_usage
from fairbank.wlm.protocol.messages import RunUsage
from fairbank.wlm.stepd.processes import PAGE_BYTES, TICKS_PER_SECOND, Process

DAEMON = 10


def process(pid: int, parent: int, seconds: float = 0, pages: int = 0) -> Process:
    ticks = int(seconds * TICKS_PER_SECOND)
    return Process(pid, False, parent, pid, 1, ticks, 2 * pages * PAGE_BYTES, pages)


def sample(*processes: Process, ended: float = 0, before: RunUsage | None = None) -> RunUsage:
    table = {item.pid: item for item in (process(DAEMON, 1, 100, 100), *processes)}
    return sample_usage(DAEMON, ended, table, before or RunUsage())


def test_all_descendants_count_and_no_other_process() -> None:
    usage = sample(process(11, DAEMON, 1, 1), process(12, 11, 2, 2), process(13, 1, 50, 50))
    assert usage.cpu_seconds == 3
    assert usage.resident_max_kib == 3 * PAGE_BYTES // 1_024
    assert usage.virtual_max_kib == 2 * usage.resident_max_kib


def test_cpu_seconds_of_ended_processes_stay() -> None:
    first = sample(process(11, DAEMON, 5, 9), process(12, DAEMON, 1, 1))
    second = sample(process(12, DAEMON, 1, 1), ended=5, before=first)
    assert second.cpu_seconds == 6
    assert second.resident_max_kib == first.resident_max_kib
    # It has ended after the step daemon answered.
    third = sample(ended=5, before=second)
    assert third.cpu_seconds == 6


def test_final_usage_keeps_the_maxima_of_the_samples() -> None:
    before = sample(process(11, DAEMON, 5, 900))
    end = final_usage(7, 10, before)
    assert end.cpu_seconds == 7
    assert end.resident_max_kib == before.resident_max_kib
    assert end.virtual_max_kib == before.virtual_max_kib
    assert final_usage(3, 10**9, before).resident_max_kib == 10**9


@pytest.mark.parametrize(
    ("host", "part", "before", "expected"),
    [
        (16_000, None, None, 16_000),
        (16_000, None, 8_000, 16_000),
        (16_000, 4_000, None, 4_000),
        (16_000, 4_000, 16_000, 4_000),
        (15_900, 4_000, 16_000, 4_000),  # another kernel
        (12_000, 4_000, 16_000, 3_000),
        (32_000, 4_000, 16_000, 8_000),
        (1, 4, 2, 2),  # virtual CPUs
    ],
)
def test_part_of_a_node_follows_the_host(
    host: int, part: int | None, before: int | None, expected: int
) -> None:
    assert part_of(host, part, before) == expected
