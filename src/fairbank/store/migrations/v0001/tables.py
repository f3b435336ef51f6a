"""Tables of the first migration."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

_Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_HELD = sa.text("state = 'held'")
_KEYED = sa.text("key IS NOT NULL")
_REFUSED = sa.text("kind = 'refusal'")
_UNDOING = sa.text(
    "kind IN ('deposit', 'withdraw', 'transfer-in', 'refund', 'recharge', 'terms', 'cap', 'member',"
    " 'open')"
)


def make() -> None:
    _people()
    _allocations()
    _runs()
    _journal()
    _sign_in()
    _fair_share()


def _number(name: str, *, null: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=null)


def _text(name: str, *, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=null)


def _bytes(name: str, *, null: bool = False) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary, nullable=null)


def _people() -> None:
    op.create_table(
        "project",
        sa.Column("id", _Id, primary_key=True),
        sa.Column("gname", sa.Text, nullable=False, unique=True),
        sa.Column("gid", sa.BigInteger, nullable=False, unique=True),
        sa.Column("account", sa.Text, nullable=False, unique=True),
        sa.Column(
            "parent", _Id, sa.ForeignKey("project.id", deferrable=True, initially="DEFERRED")
        ),
        sa.Column("removed", sa.Boolean, nullable=False),
    )
    op.create_table(
        "member",
        sa.Column("project", _Id, sa.ForeignKey("project.id"), primary_key=True),
        sa.Column("uid", sa.BigInteger, primary_key=True),
        _text("role"),
    )
    op.create_index("member_uid", "member", ["uid"])


def _allocations() -> None:
    # Sums change with every hold and charge. Free space in the pages lets PostgreSQL update them
    # without a change of an index.
    op.create_table(
        "allocation",
        sa.Column("id", _Id, primary_key=True),
        sa.Column("project", _Id, sa.ForeignKey("project.id"), nullable=False),
        *(
            _text("resource"),
            _text("category"),
            _number("start_at"),
            _number("end_at"),
            _text("state"),
        ),
        sa.Column("shared", sa.Boolean, nullable=False),
        *(
            _number(name)
            for name in ("credit_limit", "deposited", "charged", "held", "overrun", "seq")
        ),
        _bytes("link"),
        sa.CheckConstraint("start_at < end_at", name="allocation_period"),
        sa.CheckConstraint(
            "deposited >= 0 AND charged >= 0 AND held >= 0 AND credit_limit >= 0 AND overrun >= 0",
            name="allocation_sums",
        ),
        sa.CheckConstraint(
            "deposited + credit_limit + overrun >= charged + held", name="allocation_not_overdrawn"
        ),
        postgresql_with={"fillfactor": 50},
    )
    op.create_index("allocation_fund", "allocation", ["project", "resource", "end_at"])
    op.create_table(
        "user_sum",
        sa.Column("allocation", _Id, sa.ForeignKey("allocation.id"), primary_key=True),
        sa.Column("uid", sa.BigInteger, primary_key=True),
        *(_number("charged"), _number("held"), _number("cap", null=True)),
        sa.CheckConstraint("charged >= 0 AND held >= 0", name="user_sum_sums"),
        sqlite_with_rowid=False,
        postgresql_with={"fillfactor": 50},
    )


def _runs() -> None:
    op.create_table(
        "run",
        sa.Column("id", _Id, primary_key=True, autoincrement=False),
        *(_text("cluster"), _number("job_id"), _number("submitted"), _number("restart")),
        sa.Column("project", _Id, nullable=False),
        sa.Column("allocation", _Id, nullable=False),
        *(_number("owner"), _text("partition"), _text("state")),
        *(
            _number(name)
            for name in ("held", "charged", "written_off", "refunded", "start_at", "until_at")
        ),
        *(
            _number("ended_at", null=True),
            _text("outcome", null=True),
            _number("elapsed_seconds", null=True),
            _number("set_by"),
        ),
        *(
            _text("name", null=True),
            _text("qos", null=True),
            _number("nodes", null=True),
            _number("cpus", null=True),
            _text("tres", null=True),
        ),
        *(_number(name, null=True) for name in ("limit_seconds", "exit_status", "cpu_seconds")),
        sa.UniqueConstraint("job_id", "submitted", "restart", "cluster", name="run_identity"),
        sa.CheckConstraint(
            "held >= 0 AND charged >= 0 AND refunded >= 0 AND refunded <= charged", name="run_sums"
        ),
        sa.CheckConstraint(
            "(state = 'held') = (ended_at IS NULL AND state <> 'lapsed')", name="run_resolved_once"
        ),
    )
    op.create_index("run_project", "run", ["project", "id"])
    op.create_index("run_allocation", "run", ["allocation", "id"])
    op.create_index("run_owner", "run", ["owner", "id"])
    op.create_index("run_open", "run", ["until_at"], sqlite_where=_HELD, postgresql_where=_HELD)


def _journal() -> None:
    op.create_table(
        "journal",
        sa.Column("id", _Id, primary_key=True, autoincrement=False),
        *(_number("book"), _number("seq"), _number("at"), _text("kind"), _number("amount")),
        *(
            _number("run", null=True),
            _number("owner", null=True),
            _number("actor"),
            _number("acting_as", null=True),
        ),
        *(_text("key", null=True), _bytes("digest", null=True)),
        *(_number(name) for name in ("deposited", "charged", "held", "credit_limit", "overrun")),
        *(_text("comment", null=True), _text("details", null=True), _bytes("link")),
        sa.UniqueConstraint("book", "seq", name="journal_book_seq"),
    )
    op.create_index(
        "journal_key",
        "journal",
        ["actor", "key"],
        unique=True,
        sqlite_where=_KEYED,
        postgresql_where=_KEYED,
    )
    op.create_index(
        "journal_refusal",
        "journal",
        ["owner", "id"],
        sqlite_where=_REFUSED,
        postgresql_where=_REFUSED,
    )
    # Refusals only, in their order: a list of refusals would read the whole journal otherwise.
    op.create_index(
        "journal_refused", "journal", ["id"], sqlite_where=_REFUSED, postgresql_where=_REFUSED
    )
    # Few in each book, and looked through whenever an entry is undone.
    op.create_index(
        "journal_undoing",
        "journal",
        ["book", "seq"],
        sqlite_where=_UNDOING,
        postgresql_where=_UNDOING,
    )
    registry = op.create_table(
        "registry",
        sa.Column("id", _Id, primary_key=True),
        *(_number("seq"), _bytes("link")),
        sa.CheckConstraint("id = 0", name="office_is_one"),
    )
    op.bulk_insert(registry, [{"id": 0, "seq": 0, "link": bytes(32)}])
    if op.get_bind().dialect.name == "postgresql":
        op.execute("CREATE SEQUENCE entry_id_seq")


def _sign_in() -> None:
    op.create_table(
        "token",
        sa.Column("id", _Id, primary_key=True),
        sa.Column("digest", sa.LargeBinary, nullable=False, unique=True),
        *(_number("uid"), _text("label"), _text("scopes")),
        *(
            _number("created_at"),
            _number("expires_at"),
            _number("revoked_at", null=True),
            _number("parent", null=True),
        ),
    )
    op.create_index("token_uid", "token", ["uid"])
    op.create_table(
        "nonce",
        sa.Column("nonce", sa.LargeBinary, primary_key=True),
        *(_number("uid"), _number("expires_at")),
    )
    op.create_index("nonce_expires", "nonce", ["expires_at"])


def _fair_share() -> None:
    """Create the table of fair-share records. They are read by day, of one or all clusters, which
    is the order of the primary key.
    """
    op.create_table(
        "share_figure",
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("day", sa.BigInteger, primary_key=True, autoincrement=False),
        *(sa.Column(name, sa.Text, primary_key=True) for name in ("account", "login", "partition")),
        *(_number("at"), _number("shares", null=True)),
        *(sa.Column(name, sa.Double, nullable=False) for name in ("norm_shares", "usage")),
        *(sa.Column(name, sa.Double) for name in ("effective", "level", "factor")),
        sqlite_with_rowid=False,
    )
