"""What accounts were delivered beside what they are entitled to, week by week.

* Delivered beyond shares: of the processor time delivered in a week, what went to each account beyond its part of the shares, added up. It
  is half of what the parts delivered and entitled differ by in all, and so from 0, each gets his part, to 1.
* Jain's index of what accounts with shares were delivered for each share (`measures`): 1 where it is the same for all.

Both are means over the weeks, each as heavy as what was delivered in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.time import DAY
from fairbank.simulator.engine.clock import JobStarts
from fairbank.simulator.results.measures import jain
from fairbank.simulator.traces.fast_reader import Skimmed
from fairbank.simulator.traces.user_numbers import UserNumbers
from fairbank.simulator.traces.workload import TraceJob

WINDOW = 7 * DAY
"""Seconds. In the long run every job of a trace is run, so that only what is delivered in good time can differ."""


class DeliveredShare(NamedTuple):
    """Of what was delivered in the whole simulation, an account's part; and the part that its shares entitle it to. The account is called
    by its name where the trace has names."""

    account: int | str
    delivered: float
    entitled: float


class Week(NamedTuple):
    """A window: the second of the trace at which it begins, the processor-seconds that were delivered in it, and the part of them that went
    to somebody beyond his share. `jain`: of what each got for a share; None with fewer than two that have any."""

    begin: int
    delivered: int
    astray: float
    jain: float | None


class DeliveryMeter:
    """Adds up, while the clock goes, what each account gets in each window. Whoever has no shares is entitled to nothing."""

    def __init__(self, holdings: Mapping[int, int], account: Callable[[TraceJob], int]) -> None:
        self._entitled = {
            each: shares / sum(holdings.values()) for each, shares in holdings.items()
        }
        self._account = account
        self._windows: dict[int, dict[int, int]] = {}

    def take(self, moment: JobStarts) -> None:
        now, starts = moment
        for job in starts:
            begin, end, account = now, now + job.run, self._account(job)
            while begin < end:
                window = begin // WINDOW
                until = min(end, (window + 1) * WINDOW)
                got = self._windows.setdefault(window, {})
                got[account] = got.get(account, 0) + (until - begin) * job.processors
                begin = until

    def astray(self) -> float | None:
        """The part of what was delivered that went to somebody beyond his share. None where nothing was delivered."""
        return _mean([(week.astray, week.delivered) for week in self.weeks()])

    def jain(self) -> float | None:
        """Jain's index of what each got for a share. None where there are no two with shares, or they got nothing."""
        return _mean(
            [(week.jain, week.delivered) for week in self.weeks() if week.jain is not None]
        )

    def weeks(self) -> list[Week]:
        """The windows in which anything was delivered, in order."""
        return [self._week(window, got) for window, got in sorted(self._windows.items())]

    def _week(self, window: int, got: Mapping[int, int]) -> Week:
        whole = sum(got.values())
        beyond = sum(
            max(0.0, used - self._entitled.get(account, 0.0) * whole)
            for account, used in sorted(got.items())
        )
        even = jain(
            [got.get(account, 0) / part for account, part in self._entitled.items() if part]
        )
        return Week(window * WINDOW, whole, beyond / whole, even)

    def delivered(self) -> list[DeliveredShare]:
        """Every account's part, in the order of the accounts."""
        total = sum(sum(got.values()) for got in self._windows.values())
        parts: dict[int, int] = dict.fromkeys(self._entitled, 0)
        for got in self._windows.values():
            for account, used in got.items():
                parts[account] = parts.get(account, 0) + used
        return [
            DeliveredShare(
                each, parts[each] / total if total else 0.0, self._entitled.get(each, 0.0)
            )
            for each in sorted(parts)
        ]


def _mean(values: Sequence[tuple[float, int]]) -> float | None:
    """Of values that are so heavy."""
    weight = sum(heavy for _, heavy in values)
    return sum(value * heavy for value, heavy in values) / weight if weight else None


def read_holdings(lines: Iterable[str]) -> dict[str, int]:
    """Shares from lines `account,shares`: a number or name of the trace, and whole shares. The first line may have the heads. Raises
    InvalidInput."""
    holdings: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        words = [word.strip() for word in line.split(",")]
        if not line.strip() or (number == 1 and [word.lower() for word in words] in _HEADS):
            continue
        if number == 1 and not any(word.lstrip("-").isdecimal() for word in words):
            raise _malformed(
                number,
                f"heads {line.strip()[:40]!r}",
                "account,shares: the account first, then its shares",
            )
        if len(words) != 2 or not (_is_account(words[0]) and _is_whole(words[1])):
            raise _malformed(
                number,
                f"{line.strip()[:40]!r}",
                "a line such as 61002,100: a user or group, and its shares",
            )
        account = str(int(words[0])) if _is_whole(words[0]) else words[0]
        if account in holdings:
            raise _malformed(
                number, f"account {account} is there twice", "one line for each account"
            )
        holdings[account] = int(words[1])
    if not sum(holdings.values()):
        raise InvalidInput(
            "nobody has shares",
            field="shares",
            remedy="write a line for each account: the account, a comma, its shares",
        )
    return holdings


_HEADS = [[who, "shares"] for who in ("account", "user", "group")]


def _is_whole(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) <= 10


def _is_account(word: str) -> bool:
    """A number, or a name of Slurm; a number below 0 is neither."""
    return _is_whole(word) or (word.isprintable() and word[:1].isalpha() and len(word) <= 64)


def numbered(holdings: Mapping[str, int], names: UserNumbers | None) -> dict[int, int]:
    """The same by the numbers of a trace; `names` are those that it has. Raises InvalidInput for a name where it has none."""
    named = next((each for each in holdings if not each.isdecimal()), None)
    if names is None and named is not None:
        remedy = "write the number that the account has in the trace"
        raise InvalidInput(
            f"account {named!r}: this trace knows users and groups by numbers",
            field="shares",
            remedy=remedy,
        )
    return {
        int(each) if names is None else names.number(each): shares
        for each, shares in holdings.items()
    }


class Sought:
    """Looks for accounts among all jobs of a trace as they are read, whether or not they are simulated."""

    def __init__(
        self, holdings: Mapping[str, int], numbers: Iterable[int], *, unknown: int
    ) -> None:
        """`numbers` are those of the accounts in the trace, in the order of `holdings`; `unknown` is what whoever is unknown counts as."""
        self._accounts = dict(zip(holdings, numbers, strict=True))
        self._unknown = unknown
        self._met: set[int] = set()

    def among(self, jobs: Iterator[Skimmed], *, by_group: bool) -> Iterator[Skimmed]:
        """The same jobs."""
        met, column = self._met, 8 if by_group else 7
        for job in jobs:
            met.add(job[column])
            yield job

    def missing(self) -> list[str]:
        """Those that no job was of."""
        met = self._met | ({self._unknown} if -1 in self._met else set())
        return [account for account, number in self._accounts.items() if number not in met]


def _malformed(number: int, what: str, expected: str) -> InvalidInput:
    return InvalidInput(
        f"line {number}: {what}, expected {expected}", field="shares", remedy="correct the line"
    )
