"""Tables as SQLAlchemy describes them. The migrations create them, with views and triggers."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Sequence,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from fairbank.bank.entry import LOOKED_THROUGH

REVISIONS = ("0001",)
"""Names of the migrations, in order."""

# The statements that use these indexes contain the same conditions (store/sql/statements): SQLite
# selects a partial index by its text.
_UNDOING = text(f"kind IN ({', '.join(repr(kind.value) for kind in LOOKED_THROUGH)})")

metadata = MetaData()

entry_id = Sequence("entry_id_seq", metadata=metadata)
"""On PostgreSQL a batch draws the ids of its entries while it locks; SQLite continues from the last
entry.
"""


class _Flag(Boolean):
    """Boolean that is read unchanged: SQLAlchemy would read a corrupt cell of SQLite as false, and
    the audit would miss it (`rows`).
    """

    def result_processor(self, dialect: Any, coltype: object) -> None:
        return None


# SQLite numbers rows by itself only in a column declared INTEGER.
_Id = BigInteger().with_variant(Integer, "sqlite")

project = Table(
    "project",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("gname", Text, nullable=False, unique=True),
    Column("gid", BigInteger, nullable=False, unique=True),
    Column("account", Text, nullable=False, unique=True),
    # Checked at commit: a backup restores projects by number, and a parent may have a greater
    # number than its children.
    Column("parent", _Id, ForeignKey("project.id", deferrable=True, initially="DEFERRED")),
    Column("removed", _Flag, nullable=False),
)

member = Table(
    "member",
    metadata,
    Column("project", _Id, ForeignKey("project.id"), primary_key=True),
    Column("uid", BigInteger, primary_key=True),
    Column("role", Text, nullable=False),
    Index("member_uid", "uid"),
)

allocation = Table(
    "allocation",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("project", _Id, ForeignKey("project.id"), nullable=False),
    Column("resource", Text, nullable=False),
    Column("category", Text, nullable=False),
    Column("start_at", BigInteger, nullable=False),
    Column("end_at", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("shared", _Flag, nullable=False),
    Column("credit_limit", BigInteger, nullable=False),
    Column("deposited", BigInteger, nullable=False),
    Column("charged", BigInteger, nullable=False),
    Column("held", BigInteger, nullable=False),
    Column("overrun", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("link", LargeBinary, nullable=False),
    CheckConstraint("start_at < end_at", name="allocation_period"),
    CheckConstraint(
        "deposited >= 0 AND charged >= 0 AND held >= 0 AND credit_limit >= 0 AND overrun >= 0",
        name="allocation_sums",
    ),
    CheckConstraint(
        "deposited + credit_limit + overrun >= charged + held", name="allocation_not_overdrawn"
    ),
    Index("allocation_fund", "project", "resource", "end_at"),
)

user_sum = Table(
    "user_sum",
    metadata,
    Column("allocation", _Id, ForeignKey("allocation.id"), primary_key=True),
    Column("uid", BigInteger, primary_key=True),
    Column("charged", BigInteger, nullable=False),
    Column("held", BigInteger, nullable=False),
    Column("cap", BigInteger),
    CheckConstraint("charged >= 0 AND held >= 0", name="user_sum_sums"),
    sqlite_with_rowid=False,
)

run = Table(
    "run",
    metadata,
    Column("id", _Id, primary_key=True, autoincrement=False),
    Column("cluster", Text, nullable=False),
    Column("job_id", BigInteger, nullable=False),
    Column("submitted", BigInteger, nullable=False),
    Column("restart", BigInteger, nullable=False),
    # Both without a foreign key: checking one would cost a tenth of a hold, and the audit does.
    Column("project", _Id, nullable=False),
    Column("allocation", _Id, nullable=False),
    Column("owner", BigInteger, nullable=False),
    Column("partition", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("held", BigInteger, nullable=False),
    Column("charged", BigInteger, nullable=False),
    Column("written_off", BigInteger, nullable=False),
    Column("refunded", BigInteger, nullable=False),
    Column("start_at", BigInteger, nullable=False),
    Column("until_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    Column("outcome", Text),
    Column("elapsed_seconds", BigInteger),
    Column("set_by", BigInteger, nullable=False),
    Column("name", Text),
    Column("qos", Text),
    Column("nodes", BigInteger),
    Column("cpus", BigInteger),
    Column("tres", Text),
    Column("limit_seconds", BigInteger),
    Column("exit_status", BigInteger),
    Column("cpu_seconds", BigInteger),
    UniqueConstraint("job_id", "submitted", "restart", "cluster", name="run_identity"),
    CheckConstraint(
        "held >= 0 AND charged >= 0 AND refunded >= 0 AND refunded <= charged", name="run_sums"
    ),
    CheckConstraint(
        "(state = 'held') = (ended_at IS NULL AND state <> 'lapsed')", name="run_resolved_once"
    ),
    Index("run_project", "project", "id"),
    Index("run_allocation", "allocation", "id"),
    Index("run_owner", "owner", "id"),
    Index(
        "run_open",
        "until_at",
        sqlite_where=text("state = 'held'"),
        postgresql_where=text("state = 'held'"),
    ),
)

journal = Table(
    "journal",
    metadata,
    Column("id", _Id, primary_key=True, autoincrement=False),
    Column("book", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("run", BigInteger),
    Column("owner", BigInteger),
    Column("actor", BigInteger, nullable=False),
    Column("acting_as", BigInteger),
    Column("key", Text),
    Column("digest", LargeBinary),
    Column("deposited", BigInteger, nullable=False),
    Column("charged", BigInteger, nullable=False),
    Column("held", BigInteger, nullable=False),
    Column("credit_limit", BigInteger, nullable=False),
    Column("overrun", BigInteger, nullable=False),
    Column("comment", Text),
    Column("details", Text),
    Column("link", LargeBinary, nullable=False),
    UniqueConstraint("book", "seq", name="journal_book_seq"),
    Index(
        "journal_key",
        "actor",
        "key",
        unique=True,
        sqlite_where=text("key IS NOT NULL"),
        postgresql_where=text("key IS NOT NULL"),
    ),
    Index(
        "journal_refusal",
        "owner",
        "id",
        sqlite_where=text("kind = 'refusal'"),
        postgresql_where=text("kind = 'refusal'"),
    ),
    Index(
        "journal_refused",
        "id",
        sqlite_where=text("kind = 'refusal'"),
        postgresql_where=text("kind = 'refusal'"),
    ),
    Index("journal_undoing", "book", "seq", sqlite_where=_UNDOING, postgresql_where=_UNDOING),
)

registry = Table(
    "registry",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("link", LargeBinary, nullable=False),
    CheckConstraint("id = 0", name="office_is_one"),
)

share_figure = Table(
    "share_figure",
    metadata,
    Column("cluster", Text, primary_key=True),
    Column("day", BigInteger, primary_key=True, autoincrement=False),
    Column("account", Text, primary_key=True),
    Column("login", Text, primary_key=True),
    Column("partition", Text, primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("shares", BigInteger),
    Column("norm_shares", Double, nullable=False),
    Column("usage", Double, nullable=False),
    Column("effective", Double),
    Column("level", Double),
    Column("factor", Double),
)

token = Table(
    "token",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("uid", BigInteger, nullable=False),
    Column("label", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
    Column("parent", BigInteger),
    Index("token_uid", "uid"),
)

nonce = Table(
    "nonce",
    metadata,
    Column("nonce", LargeBinary, primary_key=True),
    Column("uid", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Index("nonce_expires", "expires_at"),
)
