"""pgbench, PostgreSQL's own benchmark: holds in one transaction, their charges in another."""

from __future__ import annotations

import re
import subprocess

from benchmarks.manual_loops import ENDED, LINK, STARTED
from tests.support.postgres import Installation

LONGER = 4  # than the others work, so that connecting does not count

HOLD = """
UPDATE allocation SET held = held + 60, seq = seq + 1 WHERE id = :allocation{n} RETURNING
    deposited, charged, held, seq \\gset
INSERT INTO user_sum (allocation, uid, charged, held) VALUES (:allocation{n}, 1000, :charged, :held)
    ON CONFLICT (allocation, uid) DO UPDATE SET charged = excluded.charged, held = excluded.held;
INSERT INTO run (id, cluster, job_id, submitted, restart, project, allocation, owner, partition,
    state, held, charged, written_off,
                 refunded, start_at, until_at, set_by)
    VALUES (nextval('entry_id_seq'), 'loop', lastval(), 1700000000, 0, :allocation{n},
        :allocation{n}, 1000, 'cpu', 'held', 60, 0, 0, 0,
            1700000000, 1700090000, lastval())
    RETURNING id AS run{n} \\gset
INSERT INTO journal (id, allocation, seq, at, kind, amount, run, owner, actor, deposited, charged,
    held, credit_limit, overrun,
                     details, link)
    VALUES (:run{n}, :allocation{n}, :seq, 1700000000, 'hold', 60, :run{n}, 1000, 0, :deposited,
        :charged, :held, 0, 0,
            '{started}', decode('{link}', 'hex'));
"""
CHARGE = """
UPDATE allocation SET held = held - 60, charged = charged + 30, seq = seq + 1 WHERE id =
    :allocation{n}
    RETURNING deposited, charged, held, seq \\gset
INSERT INTO user_sum (allocation, uid, charged, held) VALUES (:allocation{n}, 1000, :charged, :held)
    ON CONFLICT (allocation, uid) DO UPDATE SET charged = excluded.charged, held = excluded.held;
UPDATE run SET state = 'charged', held = 0, charged = 30, ended_at = 1700001800, outcome =
    'COMPLETED', elapsed_seconds = 1800,
    set_by = nextval('entry_id_seq')
    WHERE id = :run{n};
INSERT INTO journal (id, allocation, seq, at, kind, amount, run, owner, actor, deposited, charged,
    held, credit_limit, overrun,
                     details, link)
    VALUES (lastval(), :allocation{n}, :seq, 1700000000, 'charge', 30, :run{n}, 1000, 0,
        :deposited, :charged, :held, 0, 0,
            '{ended}', decode('{link}', 'hex'));
"""


class Pgbench:
    """pgbench on one database, with a number of clients.

    Several clients must not use batches: each locks the allocations of a batch in its own order, so
    they would deadlock.
    """

    def __init__(
        self, installation: Installation, conninfo: str, allocations: int, clients: int
    ) -> None:
        self._installation, self._conninfo, self._clients = installation, conninfo, clients
        self._allocations = allocations

    @staticmethod
    def there(installation: Installation) -> bool:
        return (installation.home / "bin" / "pgbench").exists()

    def work(self, pairs: int, batch: int = 1) -> int:
        """Do holds and their charges, `batch` at a time. Return the number of operations."""
        transactions = max(1, (LONGER if batch == 1 else 1) * pairs // self._clients // batch)
        output = subprocess.run(
            [
                str(self._installation.home / "bin" / "pgbench"),
                *(
                    "--no-vacuum",
                    "--protocol=prepared",
                    "--file=-",
                    f"--client={self._clients}",
                    f"--transactions={transactions}",
                ),
                self._conninfo,
            ],
            input=_script(self._allocations, batch),
            env=dict(self._installation.environment),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        match = re.search(r"actually processed: (\d+)", output)
        if match is None:
            raise RuntimeError(f"pgbench said nothing that we understand:\n{output}")
        return 2 * batch * int(match[1])


def _script(allocations: int, batch: int) -> str:
    """Return the script. Number and sums come from the updated row, so that any number of clients
    can work at once.
    """
    some = range(batch)
    drawn = "".join(f"\\set allocation{n} random(1, {allocations})\n" for n in some)
    holds = "".join(HOLD.format(n=n, started=_spaced(STARTED), link=LINK.hex()) for n in some)
    charges = "".join(CHARGE.format(n=n, ended=_spaced(ENDED), link=LINK.hex()) for n in some)
    return f"{drawn}BEGIN;{holds}COMMIT;\nBEGIN;{charges}COMMIT;\n"


def _spaced(details: str) -> str:
    """Insert a space after each colon: pgbench reads a colon before a name as a variable."""
    return details.replace(":", ": ")
