"""Share of the machine that accounts got beside the share that is due to them, week by week.

* Delivered beyond shares: the part of the processor time of a week that went to accounts beyond
  their shares. It is half of the sum of differences between delivered and due parts, so it is from
  0 (each account gets its part) to 1.
* Jain's index of the delivered time for each share, over the accounts with shares (`measures`): 1
  if it is the same for all.

Both are means over the weeks, weighted by the delivered time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.ids import is_name
from fairbank.core.time import DAY
from fairbank.simulator.engine.clock import JobStarts
from fairbank.simulator.results.measures import jain
from fairbank.simulator.traces.fast_reader import FastLine, UserNumbers
from fairbank.simulator.traces.workload import TraceJob

WINDOW = 7 * DAY
"""Seconds of a window. In the long run every job of a trace runs, so only delivery in time can
differ.
"""


class DeliveredShare(NamedTuple):
    """Part of an account in all that was delivered, and the part that is due by its shares. The
    account has its name if the trace has names.
    """

    account: int | str
    delivered: float
    due: float


class Week(NamedTuple):
    """Window: second of the trace at which it begins, processor-seconds delivered, the part of them
    beyond shares, and Jain's index of delivery for each share. `jain` None: no account with a share
    got any.
    """

    begin: int
    delivered: int
    share_error: float
    jain: float | None


class DeliveryMeter:
    """Meter of what accounts get in each window. Accounts without shares are due nothing."""

    def __init__(self, holdings: Mapping[int, int], account: Callable[[TraceJob], int]) -> None:
        self._due = {number: shares / sum(holdings.values()) for number, shares in holdings.items()}
        self._account = account
        self._windows: dict[int, dict[int, int]] = {}

    def take(self, job_starts: JobStarts) -> None:
        """Add the processor time of jobs that start, by window and account."""
        now, starts = job_starts
        for job in starts:
            begin, end, account = now, now + job.run, self._account(job)
            while begin < end:
                window = begin // WINDOW
                until = min(end, (window + 1) * WINDOW)
                delivered = self._windows.setdefault(window, {})
                delivered[account] = delivered.get(account, 0) + (until - begin) * job.processors
                begin = until

    def share_error(self) -> float | None:
        """Return the delivered part that went to accounts beyond their shares, if any."""
        return _mean([(week.share_error, week.delivered) for week in self.weeks()])

    def jain(self) -> float | None:
        """Return Jain's index of delivery for each share, if an account with a share has use."""
        return _mean(
            [(week.jain, week.delivered) for week in self.weeks() if week.jain is not None]
        )

    def weeks(self) -> list[Week]:
        """Return the windows in which anything was delivered, in order."""
        return [
            self._week(window, delivered) for window, delivered in sorted(self._windows.items())
        ]

    def _week(self, window: int, delivered: Mapping[int, int]) -> Week:
        whole = sum(delivered.values())
        beyond = sum(
            max(0.0, used - self._due.get(account, 0.0) * whole)
            for account, used in sorted(delivered.items())
        )
        even = jain(
            [delivered.get(account, 0) / part for account, part in self._due.items() if part]
        )
        return Week(window * WINDOW, whole, beyond / whole, even)

    def delivered(self) -> list[DeliveredShare]:
        """Return the part of each account, in the order of the accounts."""
        total = sum(sum(delivered.values()) for delivered in self._windows.values())
        parts: dict[int, int] = dict.fromkeys(self._due, 0)
        for delivered in self._windows.values():
            for account, used in delivered.items():
                parts[account] = parts.get(account, 0) + used
        return [
            DeliveredShare(
                account_number,
                parts[account_number] / total if total else 0.0,
                self._due.get(account_number, 0.0),
            )
            for account_number in sorted(parts)
        ]


def _mean(values: Sequence[tuple[float, int]]) -> float | None:
    """Return the weighted mean of pairs of value and weight."""
    weight = sum(heavy for _, heavy in values)
    return sum(value * heavy for value, heavy in values) / weight if weight else None


def read_holdings(lines: Iterable[str]) -> dict[str, int]:
    """Parse shares from lines `account,shares`: a number or name of the trace, and an integer. The
    first line may be a header. Raises InvalidInput.
    """
    holdings: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        words = [word.strip() for word in line.split(",")]
        if not line.strip() or (number == 1 and [word.lower() for word in words] in _HEADERS):
            continue
        if number == 1 and not any(word.lstrip("-").isdecimal() for word in words):
            raise _malformed(
                number,
                f"invalid header {line.strip()[:40]!r}",
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
            "no account has shares",
            field="shares",
            remedy="write a line for each account: the account, a comma, its shares",
        )
    return holdings


_HEADERS = [[who, "shares"] for who in ("account", "user", "group")]


def _is_whole(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) <= 10


def _is_account(word: str) -> bool:
    """Return True for a number, or a name of Slurm. A negative number is neither."""
    return _is_whole(word) or (is_name(word) and not word.isdecimal())


def shares_by_number(holdings: Mapping[str, int], names: UserNumbers | None) -> dict[int, int]:
    """Return shares by the numbers of a trace. Raises InvalidInput for an unknown name."""
    named = next((name for name in holdings if not name.isdecimal()), None)
    if names is None and named is not None:
        remedy = "write the number that the account has in the trace"
        raise InvalidInput(
            f"account {named!r}: this trace knows users and groups by numbers",
            field="shares",
            remedy=remedy,
        )
    return {
        int(name) if names is None else names.number(name): shares
        for name, shares in holdings.items()
    }


class AccountSearch:
    """Search for accounts among all jobs of a trace, also those that are not simulated."""

    def __init__(
        self, holdings: Mapping[str, int], numbers: Iterable[int], *, unknown: int
    ) -> None:
        """Initialise with the numbers of the accounts in the trace, in the order of `holdings`, and
        the number `unknown` of unknown accounts.
        """
        self._accounts = dict(zip(holdings, numbers, strict=True))
        self._unknown = unknown
        self._met: set[int] = set()

    def among(self, jobs: Iterator[FastLine], *, by_group: bool) -> Iterator[FastLine]:
        """Yield the same jobs."""
        met, column = self._met, 8 if by_group else 7
        for job in jobs:
            met.add(job[column])
            yield job

    def missing(self) -> list[str]:
        """Return the accounts without a job."""
        met = self._met | ({self._unknown} if -1 in self._met else set())
        return [account for account, number in self._accounts.items() if number not in met]


def _malformed(number: int, what: str, expected: str) -> InvalidInput:
    return InvalidInput(
        f"line {number}: {what}, expected {expected}", field="shares", remedy="correct the line"
    )
