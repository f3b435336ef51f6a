"""Views with the names and columns of HADM's tables (schemas 1 to 6) and balances, for HADM's
reports.

Amounts are SU-minutes, positive in their view (a withdrawal is a negative credit): the balance is
credit - predebit - debit. `activity` joins all four; failures move nothing and are not summed.
"""

from __future__ import annotations

from alembic import op

_VIEWS = (
    "CREATE VIEW projects AS SELECT id AS project_id, gname, gid, account FROM project",
    """
    CREATE VIEW allocations AS
    SELECT id AS allocation_id, project AS project_id, category, resource, {start_at} AS start_date, {end_at} AS end_date
    FROM allocation
    """,
    """
    CREATE VIEW credits AS
    SELECT id AS activity_id, book AS allocation_id,
           CASE WHEN kind IN ('withdraw', 'transfer-out') THEN -amount ELSE amount END AS amount, comment AS comments
    FROM journal
    WHERE kind IN ('deposit', 'withdraw', 'transfer-in', 'transfer-out')
    """,
    # Open holds. The activity is the entry that opened the run.
    """
    CREATE VIEW predebits AS
    SELECT run.id AS activity_id, run.allocation AS allocation_id, run.held AS amount, journal.comment AS comments,
           run.job_id AS job_id, {executing} AS status, run.owner AS owner_uid
    FROM run LEFT JOIN journal ON journal.id = run.id
    WHERE run.state = 'held'
    """,
    # Net charges of each user. The activity is the entry that opened the latest charged run.
    """
    CREATE VIEW debits AS
    SELECT (SELECT max(run.id) FROM run
            WHERE run.allocation = user_sum.allocation AND run.owner = user_sum.uid AND run.state = 'charged') AS activity_id,
           allocation AS allocation_id, charged AS amount, {nothing} AS comments, uid AS owner_uid
    FROM user_sum
    WHERE charged > 0
    """,
    """
    CREATE VIEW failures AS
    SELECT id AS activity_id, {book} AS allocation_id, amount, coalesce(comment, {reason}) AS comments,
           {job_id} AS job_id, owner AS owner_uid
    FROM journal
    WHERE kind = 'refusal'
    """,
    """
    CREATE VIEW activity AS
    SELECT activity_id, allocation_id, amount, comments FROM credits
    UNION ALL SELECT activity_id, allocation_id, amount, comments FROM predebits
    UNION ALL SELECT activity_id, allocation_id, amount, comments FROM debits
    UNION ALL SELECT activity_id, allocation_id, amount, comments FROM failures
    """,
    """
    CREATE VIEW balances AS
    SELECT id AS allocation_id, deposited AS credit, held AS predebit, charged AS debit, deposited - held - charged AS balance
    FROM allocation
    """,
)

# A run is written cluster/job@submitted.restart.
_WORDS = {
    "postgresql": {
        "start_at": "to_timestamp(start_at) AT TIME ZONE 'UTC'",
        "end_at": "to_timestamp(end_at) AT TIME ZONE 'UTC'",
        "executing": "'executing'::text",
        "nothing": "NULL::text",
        "book": "nullif(book, 0)",
        "reason": "details::json ->> 'reason'",
        "job_id": "split_part(split_part(details::json ->> 'run', '/', 2), '@', 1)::bigint",
    },
    "sqlite": {
        "start_at": "datetime(start_at, 'unixepoch')",
        "end_at": "datetime(end_at, 'unixepoch')",
        "executing": "'executing'",
        "nothing": "NULL",
        "book": "nullif(book, 0)",
        "reason": "json_extract(details, '$.reason')",
        "job_id": (
            "CAST(substr(json_extract(details, '$.run'), instr(json_extract(details, '$.run'), '/')"
            " + 1) AS INTEGER)"
        ),
    },
}


def make() -> None:
    words = _WORDS[op.get_bind().dialect.name]
    for view in _VIEWS:
        op.execute(view.format(**words))
