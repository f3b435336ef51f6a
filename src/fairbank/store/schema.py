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

from fairbank.bank.entry import READ_BY_UNDO

REVISIONS = ("0001",)
"""Names of the migrations, in order."""

IS_READ_BY_UNDO = f"kind IN ({', '.join(repr(kind.value) for kind in READ_BY_UNDO)})"
"""Condition of the index `journal_undoing`."""

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

# Sums change with every hold and charge. Free space in the pages lets PostgreSQL update them
# without a change of an index.
_SPACE_FOR_UPDATES = {"fillfactor": 50}


def _numbers(*names: str, null: bool = False) -> list[Column[int]]:
    return [Column(name, BigInteger, nullable=null) for name in names]


def _texts(*names: str, null: bool = False) -> list[Column[str]]:
    return [Column(name, Text, nullable=null) for name in names]


def _partial_index(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    """Return an index of some rows.

    The statements that use it contain the same condition (`sql.journal_statements`): SQLite selects
    a partial index by its text.
    """
    condition = text(where)
    return Index(name, *columns, unique=unique, sqlite_where=condition, postgresql_where=condition)


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
    *_texts("role"),
    Index("member_uid", "uid"),
)

allocation = Table(
    "allocation",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("project", _Id, ForeignKey("project.id"), nullable=False),
    *_texts("resource", "category"),
    *_numbers("start_at", "end_at"),
    *_texts("state"),
    Column("shared", _Flag, nullable=False),
    *_texts("partition", "reservation", null=True),
    *_numbers("credit_limit", "deposited", "charged", "held", "overrun", "seq"),
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
    postgresql_with=_SPACE_FOR_UPDATES,
)

user_sum = Table(
    "user_sum",
    metadata,
    Column("allocation", _Id, ForeignKey("allocation.id"), primary_key=True),
    Column("uid", BigInteger, primary_key=True),
    *_numbers("charged", "held"),
    *_numbers("cap", null=True),
    CheckConstraint("charged >= 0 AND held >= 0", name="user_sum_sums"),
    sqlite_with_rowid=False,
    postgresql_with=_SPACE_FOR_UPDATES,
)

run = Table(
    "run",
    metadata,
    Column("id", _Id, primary_key=True, autoincrement=False),
    *_texts("cluster"),
    *_numbers("job_id", "submitted", "restart"),
    # Both without a foreign key: checking one would cost a tenth of a hold, and the audit does.
    Column("project", _Id, nullable=False),
    Column("allocation", _Id, nullable=False),
    *_numbers("owner"),
    *_texts("partition", "state"),
    *_numbers("held", "charged", "written_off", "refunded", "start_at", "until_at"),
    *_numbers("ended_at", null=True),
    *_texts("outcome", null=True),
    *_numbers("elapsed_seconds", null=True),
    *_numbers("set_by"),
    *_texts("name", "qos", null=True),
    *_numbers("nodes", "cpus", null=True),
    *_texts("tres", null=True),
    *_numbers("limit_seconds", "exit_status", "cpu_seconds", "occupied", null=True),
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
    _partial_index("run_open", "until_at", where="state = 'held'"),
    # Usage of a part of a day. Rising times make it cheap: new rows go to its last page.
    _partial_index("run_ended", "ended_at", where="ended_at IS NOT NULL"),
)

USAGE_FIGURES = (
    *("runs", "failed", "charged", "elapsed", "core", "gpu", "waited", "busy", "given"),
    *("wasted", "occupied", "without_size", "early"),
)
"""Sums of `bank.query.Usage`, in its order."""

# Sums of closed runs by blocks of `days`, 1 and 32, so that usage of a million runs is a sum of few
# rows. They are made from the journal (`store.sql.usage_sums`), and can be deleted and made again.
# The primary key has the order in which usage is grouped: time first, names last.
usage_sum = Table(
    "usage_sum",
    metadata,
    *(Column(name, _Id, primary_key=True) for name in ("days", "block", "allocation", "project")),
    Column("cluster", Text, primary_key=True),
    Column("owner", _Id, primary_key=True),
    *(Column(name, Text, primary_key=True) for name in ("partition", "qos")),
    *_numbers(*USAGE_FIGURES),
    *_numbers("lowest_exit", "highest_exit", null=True),
    sqlite_with_rowid=False,
)

# `seq` is the last entry of the journal that the sums contain.
usage_head = Table(
    "usage_head",
    metadata,
    Column("allocation", _Id, ForeignKey("allocation.id"), primary_key=True),
    *_numbers("seq"),
)

journal = Table(
    "journal",
    metadata,
    Column("id", _Id, primary_key=True, autoincrement=False),
    *_numbers("allocation", "seq", "at"),
    *_texts("kind"),
    *_numbers("amount"),
    *_numbers("run", "owner", null=True),
    *_numbers("actor"),
    *_numbers("acting_as", null=True),
    *_texts("key", null=True),
    Column("digest", LargeBinary),
    *_numbers("deposited", "charged", "held", "credit_limit", "overrun"),
    *_texts("comment", "details", null=True),
    Column("link", LargeBinary, nullable=False),
    UniqueConstraint("allocation", "seq", name="journal_allocation_seq"),
    _partial_index("journal_key", "actor", "key", where="key IS NOT NULL", unique=True),
    _partial_index("journal_refusal", "owner", "id", where="kind = 'refusal'"),
    # Refusals only, in their order: a list of refusals would read the whole journal otherwise.
    _partial_index("journal_refused", "id", where="kind = 'refusal'"),
    # Few in each journal, and looked through whenever an entry is undone.
    _partial_index("journal_undoing", "allocation", "seq", where=IS_READ_BY_UNDO),
)

registry = Table(
    "registry",
    metadata,
    Column("id", _Id, primary_key=True),
    *_numbers("seq"),
    Column("link", LargeBinary, nullable=False),
    CheckConstraint("id = 0", name="registry_is_one"),
)

# Read by day, of one or all clusters, which is the order of the primary key.
share_figure = Table(
    "share_figure",
    metadata,
    Column("cluster", Text, primary_key=True),
    Column("day", BigInteger, primary_key=True, autoincrement=False),
    *(Column(name, Text, primary_key=True) for name in ("account", "login", "partition")),
    *_numbers("at"),
    *_numbers("shares", null=True),
    *(Column(name, Double, nullable=False) for name in ("norm_shares", "usage")),
    *(Column(name, Double) for name in ("effective", "level", "factor")),
    sqlite_with_rowid=False,
)

token = Table(
    "token",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("digest", LargeBinary, nullable=False, unique=True),
    *_numbers("uid"),
    *_texts("label", "scopes"),
    *_numbers("created_at", "expires_at"),
    *_numbers("revoked_at", "parent", null=True),
    Index("token_uid", "uid"),
)

nonce = Table(
    "nonce",
    metadata,
    Column("nonce", LargeBinary, primary_key=True),
    *_numbers("uid", "expires_at"),
    Index("nonce_expires", "expires_at"),
)
