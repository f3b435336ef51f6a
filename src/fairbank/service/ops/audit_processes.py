"""Audit in several processes, for long journals.

The rows of a journal follow from its own entries alone. So each process reads ranges of journals,
each range in its own snapshot, while the bank goes on working.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import pairwise
from multiprocessing import get_context, parent_process
from threading import Thread

import msgspec

from fairbank.bank.audit import Finding, Head, RecordedTransfer
from fairbank.bank.query import ALL_JOURNALS, JournalRange
from fairbank.core.errors import Corrupt, Unavailable
from fairbank.core.progress import Progress
from fairbank.service.ops.audit import Audit, AuditResult
from fairbank.service.ops.garbage_collector import tune_garbage_collector
from fairbank.store.contract import Store

ENTRIES_MIN = 100_000
"""Entries of a range: fewer are read before another process has started."""

_PARTS_PER_PROCESS = 16  # so that no process works alone on a long part at the end


def verify(
    store: Store,
    open_again: Callable[[], Store],
    heads: Mapping[int, Head],
    progress: Progress | None = None,
    *,
    jobs: int | None = None,
    entries_min: int = ENTRIES_MIN,
) -> AuditResult:
    """Verify a store in several processes; a short journal in this one.

    Args:
        store: the store to verify.
        open_again: opens the store in another process, so it must be picklable.
        heads: last links saved earlier, by journal.
        progress: called now and then.
        jobs: number of processes; None for one per processor.
        entries_min: entries of a range.

    Raises:
        Unavailable: a process was killed.
    """
    jobs = jobs or len(os.sched_getaffinity(0))
    stretches = _split(store, jobs * _PARTS_PER_PROCESS, entries_min)
    if jobs == 1 or len(stretches) == 1:
        return Audit(store).verify(heads, progress)
    parts = _run_in_processes(open_again, heads, stretches, jobs)
    whole = _combine(parts, progress, _entries(store))
    missing = Audit(store).check_transfers(whole.halves)
    return msgspec.structs.replace(whole, findings=(*whole.findings, *missing))


def _split(store: Store, pieces: int, entries_min: int) -> list[JournalRange]:
    try:
        return list(split_journals(Audit(store).journal_heads(), pieces, entries_min))
    except (Corrupt, TypeError):  # damaged rows: the audit itself reports them
        return [ALL_JOURNALS]


def split_journals(heads: Iterable[Head], pieces: int, entries_min: int) -> Iterator[JournalRange]:
    """Yield ranges that cover all journals, in parts of about equal length.

    Args:
        heads: the last entry of each journal.
        pieces: about how many parts; fewer if these would be shorter than `entries_min`.
        entries_min: the fewest entries of a part, except of the last one.
    """
    known = sorted(heads, key=lambda head: head.allocation)
    size = max(entries_min, sum(head.seq for head in known) // pieces)
    ends: list[int | None] = [None]
    length = 0
    for head in known:
        length += head.seq
        if length >= size and head is not known[-1]:
            ends.append(head.allocation + 1)
            length = 0
    return (JournalRange(first, end) for first, end in pairwise([*ends, None]))


def _run_in_processes(
    open_again: Callable[[], Store],
    heads: Mapping[int, Head],
    stretches: list[JournalRange],
    jobs: int,
) -> Iterator[AuditResult]:
    """Yield the results of all ranges, then that of the store as a whole: the longest task, begun
    first.
    """
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_init_worker)
    try:
        whole = pool.submit(_check_store, open_again)
        waiting = [
            pool.submit(
                _verify_journals,
                open_again,
                {number: head for number, head in heads.items() if number in stretch},
                stretch,
            )
            for stretch in stretches
        ]
        yield from (future.result() for future in waiting)
        yield AuditResult(0, 0, 0, whole.result())
    except BrokenProcessPool as ended:
        raise Unavailable(
            "a process of the audit was ended from outside",
            remedy="try again; perhaps memory ran out",
        ) from ended
    finally:
        pool.shutdown(cancel_futures=True)


def _init_worker() -> None:
    """Leave Ctrl-C to the parent process, and collect reference cycles rarely, as the server
    does.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tune_garbage_collector()
    Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    """End this process with its parent: the pool does not notice a killed parent."""
    if (caller := parent_process()) is not None:
        caller.join()
        os._exit(1)


def _verify_journals(
    open_again: Callable[[], Store], heads: Mapping[int, Head], journals: JournalRange
) -> AuditResult:
    store = open_again()
    try:
        return Audit(store).verify(heads, journals=journals)
    finally:
        store.close()


def _check_store(open_again: Callable[[], Store]) -> tuple[Finding, ...]:
    store = open_again()
    try:
        return Audit(store).check_store()
    finally:
        store.close()


def _combine(parts: Iterable[AuditResult], progress: Progress | None, of: int) -> AuditResult:
    """Combine the results. Findings about the whole store come first: they may explain the
    others.
    """
    whole = AuditResult(0, 0, 0, ())
    for part in parts:
        whole = AuditResult(
            whole.entries + part.entries,
            whole.journals + part.journals,
            whole.runs + part.runs,
            (*whole.findings, *part.findings),
            _add(whole.halves, part.halves),
        )
        if progress:
            progress(whole.entries, of)
    return msgspec.structs.replace(
        whole,
        findings=tuple(sorted(whole.findings, key=lambda finding: finding.journal is not None)),
    )


def _add(
    some: Mapping[RecordedTransfer, int], more: Mapping[RecordedTransfer, int]
) -> Mapping[RecordedTransfer, int]:
    """Return the halves without those that make a whole transfer together."""
    total = Counter(some)
    total.update(more)
    return {transfer: count for transfer, count in total.items() if count}


def _entries(store: Store) -> int:
    with store.reading() as reader:
        return reader.count_entries()
