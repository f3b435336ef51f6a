"""What is free when: identical processors, beside a plain list of seconds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairbank.scheduling.profile import Processors

SIZE = 8

runs = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 3)), max_size=5).filter(lambda taken: sum(n for _, n in taken) <= SIZE)
wishes = st.lists(st.tuples(st.integers(1, SIZE), st.integers(1, 10), st.integers(0, 15)), max_size=8)


def test_six_nodes_are_idle_and_two_come_free_in_three_hours() -> None:
    """The example of the seed: eight nodes are wanted; until then only what ends within three hours may have the six."""
    hour = 3_600
    machine = Processors(8, now=0, taken=[(3 * hour, 2)])
    assert machine.earliest(8, hour, after=0) == (3 * hour, 8)
    machine.take(8, 3 * hour, 4 * hour)
    assert machine.earliest(6, 3 * hour, after=0) == (0, 6)
    assert machine.earliest(6, 3 * hour + 1, after=0) == (4 * hour, 6)


def test_more_than_the_machine_has_is_never_free() -> None:
    assert Processors(8, now=0).earliest(9, 1, after=0) is None


def test_whoever_asks_for_later_gets_later() -> None:
    assert Processors(8, now=100).earliest(8, 10, after=150) == (150, 8)


@given(runs, wishes)
def test_steps_say_what_a_list_of_seconds_says(running: list[tuple[int, int]], asked: list[tuple[int, int, int]]) -> None:
    """Each second has its own count here; whoever asks takes what was found, and so shapes what the next one finds."""
    seconds = [SIZE - sum(n for end, n in running if second < end) for second in range(400)]
    machine = Processors(SIZE, 0, sorted(running))
    for wanted, long, after in asked:
        found = machine.earliest(wanted, long, after)
        expected = next(at for at in range(after, 300) if min(seconds[at : at + long]) >= wanted)
        assert found == (expected, wanted)
        machine.take(wanted, expected, expected + long)
        seconds[expected : expected + long] = [free - wanted for free in seconds[expected : expected + long]]
