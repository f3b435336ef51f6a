"""Tables of the ledger, their triggers, and the views for reports."""

from __future__ import annotations

from alembic import op

from fairbank.store.schema import metadata, registry

revision = "0001"
down_revision = None

# Triggers: periods of a project and resource never overlap, the journal only grows, allocations and
# runs are never deleted. Only a restore with `replace` lifts the last two, inside its own
# transaction (`fairbank.store.sql.store`).
_POSTGRESQL_GUARDS = (
    "CREATE EXTENSION IF NOT EXISTS btree_gist",
    """
    ALTER TABLE allocation ADD CONSTRAINT allocation_periods_apart
    EXCLUDE USING gist (project WITH =, resource WITH =, int8range(start_at, end_at) WITH &&)
    WHERE (state <> 'removed')
    """,
    """
    CREATE FUNCTION fairbank_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'rows of % are never changed or deleted: % refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'restrict_violation', CONSTRAINT = TG_NAME;
    END
    $$
    """,
    """
    CREATE TRIGGER journal_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON journal
    FOR EACH STATEMENT EXECUTE FUNCTION fairbank_refuse()
    """,
    """
    CREATE TRIGGER run_stays BEFORE DELETE OR TRUNCATE ON run
    FOR EACH STATEMENT EXECUTE FUNCTION fairbank_refuse()
    """,
    """
    CREATE TRIGGER allocation_stays BEFORE DELETE OR TRUNCATE ON allocation
    FOR EACH STATEMENT EXECUTE FUNCTION fairbank_refuse()
    """,
)

_OVERLAP = """
    CREATE TRIGGER {name} BEFORE {event} ON allocation
    WHEN {moved} EXISTS (
        SELECT 1 FROM allocation AS other
        WHERE other.project = NEW.project AND other.resource = NEW.resource AND other.id <> NEW.id
          AND other.start_at < NEW.end_at AND NEW.start_at < other.end_at
          AND other.state <> 'removed' AND NEW.state <> 'removed'
    )
    BEGIN SELECT RAISE(ABORT, 'allocation_periods_apart: allocations overlap'); END
"""
_REFUSE = """
    CREATE TRIGGER {name} BEFORE {event} ON {table}
    BEGIN SELECT RAISE(ABORT, '{name}: rows of {table} are never changed or deleted'); END
"""
_SQLITE_GUARDS = (
    _OVERLAP.format(name="allocation_apart_when_opened", event="INSERT", moved=""),
    _OVERLAP.format(
        name="allocation_apart_when_amended",
        event="UPDATE OF project, resource, start_at, end_at, state",
        moved=(
            "(NEW.project, NEW.resource, NEW.start_at, NEW.end_at, NEW.state) IS NOT (OLD.project,"
            " OLD.resource, OLD.start_at, OLD.end_at, OLD.state) AND"
        ),
    ),
    _REFUSE.format(name="journal_only_grows", event="UPDATE", table="journal"),
    _REFUSE.format(name="journal_stays", event="DELETE", table="journal"),
    _REFUSE.format(name="run_stays", event="DELETE", table="run"),
    _REFUSE.format(name="allocation_stays", event="DELETE", table="allocation"),
)

# Views with the names and columns of HADM's tables (schemas 1 to 6) and balances, for HADM's
# reports. Amounts are SU-minutes, positive in their view (a withdrawal is a negative credit): the
# balance is credit - predebit - debit. `activity` joins all four; failures move nothing and are not
# summed.
_VIEWS = (
    "CREATE VIEW projects AS SELECT id AS project_id, gname, gid, account FROM project",
    """
    CREATE VIEW allocations AS
    SELECT id AS allocation_id, project AS project_id, category, resource,
           {start_at} AS start_date, {end_at} AS end_date
    FROM allocation WHERE state <> 'removed'
    """,
    """
    CREATE VIEW credits AS
    SELECT id AS activity_id, allocation AS allocation_id,
           CASE WHEN kind IN ('withdraw', 'transfer-out') THEN -amount ELSE amount END AS amount,
           comment AS comments
    FROM journal
    WHERE kind IN ('deposit', 'withdraw', 'transfer-in', 'transfer-out')
    """,
    # Holds. The activity is the entry that opened the run. A run that has ended holds nothing, and
    # its charge is in the sum of `debits`.
    """
    CREATE VIEW predebits AS
    SELECT run.id AS activity_id, run.allocation AS allocation_id, run.held AS amount,
           journal.comment AS comments, run.job_id AS job_id,
           CASE run.state WHEN 'held' THEN {executing} ELSE {completed} END AS status,
           run.owner AS owner_uid
    FROM run LEFT JOIN journal ON journal.id = run.id
    """,
    # Net charges of each user. The activity is the entry that opened the latest charged run.
    """
    CREATE VIEW debits AS
    SELECT (SELECT max(run.id) FROM run
            WHERE run.allocation = user_sum.allocation AND run.owner = user_sum.uid
              AND run.state = 'charged') AS activity_id,
           allocation AS allocation_id, charged AS amount, {nothing} AS comments, uid AS owner_uid
    FROM user_sum
    WHERE charged > 0
    """,
    """
    CREATE VIEW failures AS
    SELECT id AS activity_id, nullif(allocation, 0) AS allocation_id, amount,
           coalesce(comment, {reason}) AS comments, {job_id} AS job_id, owner AS owner_uid
    FROM journal
    WHERE kind = 'refusal'
    """,
    """
    CREATE VIEW activity AS
    SELECT activity_id, allocation_id, amount, comments FROM credits
    UNION ALL SELECT activity_id, allocation_id, amount, comments FROM predebits
    WHERE status = 'executing'
    UNION ALL SELECT activity_id, allocation_id, amount, comments FROM debits
    UNION ALL SELECT activity_id, allocation_id, amount, comments FROM failures
    """,
    """
    CREATE VIEW balances AS
    SELECT id AS allocation_id, deposited AS credit, held AS predebit, charged AS debit,
           deposited - held - charged AS balance
    FROM allocation WHERE state <> 'removed'
    """,
)

# A run is written cluster/job@submitted.restart.
_EXPRESSIONS = {
    "postgresql": {
        "start_at": "to_timestamp(start_at) AT TIME ZONE 'UTC'",
        "end_at": "to_timestamp(end_at) AT TIME ZONE 'UTC'",
        "executing": "'executing'::text",
        "completed": "'completed'::text",
        "nothing": "NULL::text",
        "reason": "details::json ->> 'reason'",
        "job_id": "split_part(split_part(details::json ->> 'run', '/', 2), '@', 1)::bigint",
    },
    "sqlite": {
        "start_at": "datetime(start_at, 'unixepoch')",
        "end_at": "datetime(end_at, 'unixepoch')",
        "executing": "'executing'",
        "completed": "'completed'",
        "nothing": "NULL",
        "reason": "json_extract(details, '$.reason')",
        "job_id": (
            "CAST(substr(json_extract(details, '$.run'), instr(json_extract(details, '$.run'), '/')"
            " + 1) AS INTEGER)"
        ),
    },
}


def upgrade() -> None:
    database = op.get_bind().dialect.name
    # From the schema, as long as this is the only migration. The second one changes the schema, so
    # with it the tables as they were have to be written out here.
    metadata.create_all(op.get_bind(), checkfirst=False)
    op.bulk_insert(registry, [{"id": 0, "seq": 0, "link": bytes(32)}])
    for guard in _POSTGRESQL_GUARDS if database == "postgresql" else _SQLITE_GUARDS:
        op.execute(guard)
    for view in _VIEWS:
        op.execute(view.format(**_EXPRESSIONS[database]))
