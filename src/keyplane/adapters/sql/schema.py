"""The tables, as the newest migration leaves them. Only migrations may change a database's.

Texts, entries, sections of plans and contents are *bodies*, each kept once under the digest of
its bytes. What a plan consists of is kept as spans: an item was in every plan from `since` on, up
to but without `until`; so a commit writes what moved and nothing else.
"""

import sqlalchemy as sa

VERSION = "0008"
"""The newest migration, after which the tables are as this module says."""

VERSION_TABLE = "keyplane_version"

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    }
)

lease = sa.Table(
    "lease",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("holder", sa.Text),
    sa.Column("until_ms", sa.BigInteger, nullable=False),
)
"""One row. Every write locks it first: writers take turns by it, and are fenced by it."""

bodies = sa.Table(
    "bodies",
    metadata,
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

revisions = sa.Table(
    "revisions",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("verb", sa.Text, nullable=False, server_default=""),
    sa.Column("parent", sa.Integer),
    sa.Column("generation", sa.Text),
    sa.Column("moved", sa.Integer),
)
"""`generation` is the last that was made the target from it, `moved` how many entries that moved."""

revision_files = sa.Table(
    "revision_files",
    metadata,
    sa.Column("revision", sa.Integer, sa.ForeignKey(revisions.c.number), primary_key=True),
    sa.Column("path", sa.Text, primary_key=True),
    sa.Column("body", sa.Text, sa.ForeignKey(bodies.c.digest), nullable=False, index=True),
)

plans = sa.Table(
    "plans",
    metadata,
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("generation", sa.Text, nullable=False, index=True),
    sa.Column("format", sa.Text, nullable=False),
    sa.Column("fleet", sa.Text),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
)
"""The commits that are kept. A generation that became the target again has several."""

plan_items = sa.Table(
    "plan_items",
    metadata,
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("since", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("until", sa.Integer, index=True),
    sa.Column("body", sa.Text, sa.ForeignKey(bodies.c.digest), nullable=False, index=True),
)

target = sa.Table(
    "target",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("plan", sa.Integer, sa.ForeignKey(plans.c.seq)),
)
"""One row."""

rollouts = sa.Table(
    "rollouts",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("generation", sa.Text, nullable=False),
    sa.Column("created_ms", sa.BigInteger, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("open", sa.Boolean, nullable=False),
    sa.Column("state", sa.LargeBinary, nullable=False),
    sa.Column("base_plan", sa.Integer, sa.ForeignKey(plans.c.seq)),
    sa.Column("request", sa.Text, nullable=False, server_default=""),
)
"""`base_plan` is the parent, of the latest rollout only: its base is told as differences from it."""

sa.Index(
    "ix_rollouts_one_open",
    rollouts.c.open,
    unique=True,
    sqlite_where=rollouts.c.open.is_(True),
    postgresql_where=rollouts.c.open.is_(True),
)

rollout_base = sa.Table(
    "rollout_base",
    metadata,
    sa.Column("rollout", sa.Integer, sa.ForeignKey(rollouts.c.number), primary_key=True),
    sa.Column("entry", sa.Text, primary_key=True),
    sa.Column("body", sa.Text, sa.ForeignKey(bodies.c.digest), index=True),
)
"""Where the base is not the parent plan; no body where the parent has an entry that it has not."""

offers = sa.Table(
    "offers",
    metadata,
    sa.Column("machine", sa.Text, primary_key=True),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("counter", sa.BigInteger, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("signed", sa.LargeBinary, nullable=False),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
)

sends = sa.Table(
    "sends",
    metadata,
    sa.Column("machine", sa.Text, primary_key=True),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("counter", sa.BigInteger, nullable=False),
    sa.Column("carried", sa.LargeBinary, nullable=False),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
)
"""What each row of `offers` carries: written with it."""

freezes = sa.Table(
    "freezes",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("why", sa.Text, nullable=False),
)
"""One row, or none where the fleet was never frozen."""

reports = sa.Table(
    "reports",
    metadata,
    sa.Column("machine", sa.Text, primary_key=True),
    sa.Column("received_ms", sa.BigInteger, nullable=False),
    sa.Column("lives", sa.LargeBinary, nullable=False),
    sa.Column("report", sa.LargeBinary, nullable=False),
)

facts = sa.Table(
    "facts",
    metadata,
    sa.Column("machine", sa.Text, primary_key=True),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
    sa.Column("facts", sa.LargeBinary, nullable=False),
)
"""One row for each machine: all that it says of itself is said, and read, at once."""

words = sa.Table(
    "words",
    metadata,
    sa.Column("entry", sa.Text, primary_key=True),
    sa.Column("number", sa.BigInteger, nullable=False),
    sa.Column("stop", sa.Boolean, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
)

permits = sa.Table(
    "permits",
    metadata,
    sa.Column("entry", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
)
"""Of each entry the one that is out."""

cordons = sa.Table(
    "cordons",
    metadata,
    sa.Column("machine", sa.Text, primary_key=True),
    sa.Column("drain", sa.Boolean, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
)

volume_orders = sa.Table(
    "volume_orders",
    metadata,
    sa.Column("entry", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("number", sa.BigInteger, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
"""Until each was carried out."""

backups = sa.Table(
    "backups",
    metadata,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

histories = sa.Table(
    "histories",
    metadata,
    sa.Column("machine", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("last", sa.BigInteger, nullable=False),
)
"""Up to which number each machine has told what happened there."""

occurrences = sa.Table(
    "occurrences",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("machine", sa.Text, nullable=False),
    sa.Column("entry", sa.Text, nullable=False),
    sa.Column("number", sa.BigInteger, nullable=False),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
    sa.Column("unit", sa.Text, nullable=False),
    sa.Column("act", sa.Text, nullable=False),
    sa.Column("cause", sa.Text, nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Index("ix_occurrences_machine", "machine", "entry"),
)
"""Of each entry the last few hundred, in the order in which they came."""

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("what", sa.Text, nullable=False),
    sa.Column("detail", sa.LargeBinary, nullable=False),
)
"""Never pruned: it says who changed what, however long ago."""


def is_current(connection: sa.Connection) -> bool:
    """Whether a database's tables are these. Asks without Alembic, which is slow to import."""
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return False
    versions = sa.select(sa.column("version_num", sa.Text)).select_from(sa.table(VERSION_TABLE))
    return list(connection.execute(versions).scalars()) == [VERSION]
