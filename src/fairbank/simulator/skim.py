"""Skims a trace: of its 18 columns only those that a schedule depends on become numbers, and are judged.

So a line of plain numbers costs a third of what `job_line` takes to read all of them. Whatever is not plain (a comment, a decimal, a
wrong number of columns, a number out of the ordinary) goes to `job_line`, which reads it or refuses it in the same words as ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from fairbank.simulator.header import Header
from fairbank.simulator.job_line import PLAIN, judge, parse_job
from fairbank.simulator.swf import REMARK_LIMIT, ByteStream, bounded, head_of, is_remark, lines, too_many_remarks

ORDINARY = 1 << 31
"""Numbers below it need no second look: seconds of a lifetime, processors of any machine."""

Skimmed = tuple[int, int, int, int, int, int, int, int, int, int]
"""Of one line: job number, submit time, run time, allocated and requested processors, requested time, status, user, group, partition."""


class Skim(NamedTuple):
    """The header, already read, and the lines, skimmed as they are asked for, once."""

    header: Header
    jobs: Iterator[Skimmed]


def skim(stream: ByteStream) -> Skim:
    """Skim a trace. Raises Malformed, with the line, as `swf.read` does, for all but what stands in a column that nobody asks for."""
    numbered = lines(stream)
    header, first = head_of(bounded(numbered))
    return Skim(header, _skimmed(chain(first, numbered), header.unix_start_time or 0))


def _skimmed(numbered: Iterator[tuple[int, bytes]], unix_start_time: int) -> Iterator[Skimmed]:
    before = remarks = 0
    for number, line in numbered:
        skimmed = _plainly(line)
        if skimmed is None or skimmed[0] < 0 or skimmed[1] < before:
            if is_remark(line):
                remarks += len(line)
                if remarks > REMARK_LIMIT:
                    raise too_many_remarks(number)
                continue
            job = parse_job(line, number)
            judge(job, number, before, unix_start_time)
            times = (job.number, job.submit_time, job.run_time)
            sizes = (job.allocated_processors, job.requested_processors, job.requested_time)
            skimmed = (*times, *sizes, job.status, job.user, job.group, job.partition)
        before = skimmed[1]
        yield skimmed


def _plainly(line: bytes) -> Skimmed | None:
    """A line of 18 plain columns; None where somebody is to look closer."""
    if line.translate(None, PLAIN):
        return None
    try:
        name, submit, _, run, given, _, _, asked, limit, _, how, user, group, _, _, where, _, _ = line.split()
        found = int(name), int(submit), int(run), int(given), int(asked), int(limit), int(how), int(user), int(group), int(where)
    except ValueError:
        return None
    return found if min(found) >= -1 and max(found) < ORDINARY else None
