"""Paused server, one of two: the other continues, and both agree afterwards."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Callable

import pytest

from tests.faults.answer_log import AnswerLog, check_ledger
from tests.faults.contention import Contention
from tests.faults.ledger_tables import LedgerTables
from tests.faults.nemesis import report_until, wait_for
from tests.support.figures import LogFigure
from tests.support.server import FairbankServer, run_two_banks
from tests.support.wire import run

CLIENTS = 24
# The database ends a transaction that is idle for 30 s; the rest allows for slow test machines.
PAUSE_MAX_SECONDS = 75


async def pause_repeatedly(
    first: FairbankServer, second: FairbankServer, times: int, seed: int
) -> tuple[AnswerLog, list[float]]:
    """Run clients on both servers and pause the first now and then, until the second has answered
    200 requests. Return the answers, and the seconds of each pause.
    """
    answer_logs, over, rng = (AnswerLog(), AnswerLog()), asyncio.Event(), random.Random(seed)
    contention = Contention(CLIENTS, 0, seed)
    staff = await contention.open([second.socket], answer_logs[1])
    seconds = []
    async with asyncio.TaskGroup() as tasks:
        for number in range(1, CLIENTS + 1):
            server, answer_log = ((first, answer_logs[0]), (second, answer_logs[1]))[number % 2]
            tasks.create_task(
                report_until(over, contention.client(number, [server.socket], answer_log))
            )
        tasks.create_task(staff.adjust_credit(over))
        for _ in range(times):
            await wait_for(
                more_answers(answer_logs[0], rng.randrange(1, 80)), "the first server to work"
            )
            os.kill(first.pid, signal.SIGSTOP)
            begun = asyncio.get_running_loop().time()
            await wait_for(more_answers(answer_logs[1], 200), "the other server to go on")
            seconds.append(asyncio.get_running_loop().time() - begun)
            os.kill(first.pid, signal.SIGCONT)
        await wait_for(more_answers(answer_logs[0], 50), "the first server to work again")
        over.set()
    return answer_logs[0] | answer_logs[1], seconds


def more_answers(answer_log: AnswerLog, answers: int) -> Callable[[], bool]:
    due = len(answer_log.latencies) + answers
    return lambda: len(answer_log.latencies) >= due


@pytest.mark.campaign
@pytest.mark.usefixtures("long_form")
def test_paused_server_does_not_stop_the_other(
    database: str, seed: int, log_figure: LogFigure
) -> None:
    """A pause may take a minute."""
    with run_two_banks(database) as (first, second):
        answer_log, seconds = run(pause_repeatedly(first, second, 8, seed))
        figures = check_ledger(answer_log, LedgerTables(database))
        log_figure(
            f"{len(seconds)} pauses; the other server needed {max(seconds):.1f} s at most for"
            f" 200 answers; {answer_log.summary()}"
        )
        log_figure(str(figures))
        assert max(seconds) < PAUSE_MAX_SECONDS
        assert first.command("audit", "verify").returncode == 0
