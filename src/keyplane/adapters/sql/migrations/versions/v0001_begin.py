"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    _shared()
    _plans()
    _rollouts()
    _machines()


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _big(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def _bytes(name: str) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary, nullable=False)


def _number(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=nullable, autoincrement=False)


def _shared() -> None:
    lease = op.create_table(
        "lease",
        _number("id"),
        sa.Column("holder", sa.Text),
        _big("until_ms"),
        sa.PrimaryKeyConstraint("id", name="pk_lease"),
    )
    op.bulk_insert(lease, [{"id": 1, "holder": None, "until_ms": 0}])
    op.create_table(
        "bodies",
        _text("digest"),
        _bytes("body"),
        sa.PrimaryKeyConstraint("digest", name="pk_bodies"),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer, nullable=False),
        _big("at_ms"),
        _text("who"),
        _text("what"),
        _bytes("detail"),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
    )


def _plans() -> None:
    op.create_table(
        "revisions",
        _number("number"),
        _text("digest"),
        _big("at_ms"),
        _text("who"),
        _text("why"),
        sa.PrimaryKeyConstraint("number", name="pk_revisions"),
    )
    op.create_table(
        "revision_files",
        _number("revision"),
        _text("path"),
        _text("body"),
        sa.PrimaryKeyConstraint("revision", "path", name="pk_revision_files"),
        sa.ForeignKeyConstraint(
            ["revision"], ["revisions.number"], name="fk_revision_files_revision"
        ),
        sa.ForeignKeyConstraint(["body"], ["bodies.digest"], name="fk_revision_files_body"),
    )
    op.create_index("ix_revision_files_body", "revision_files", ["body"])
    op.create_table(
        "plans",
        _number("seq"),
        _text("generation"),
        _text("format"),
        sa.Column("fleet", sa.Text),
        _number("revision"),
        _text("who"),
        _big("at_ms"),
        sa.PrimaryKeyConstraint("seq", name="pk_plans"),
    )
    op.create_index("ix_plans_generation", "plans", ["generation"])
    op.create_table(
        "plan_items",
        _text("kind"),
        _text("name"),
        _number("since"),
        _number("until", nullable=True),
        _text("body"),
        sa.PrimaryKeyConstraint("kind", "name", "since", name="pk_plan_items"),
        sa.ForeignKeyConstraint(["body"], ["bodies.digest"], name="fk_plan_items_body"),
    )
    op.create_index("ix_plan_items_until", "plan_items", ["until"])
    op.create_index("ix_plan_items_body", "plan_items", ["body"])
    target = op.create_table(
        "target",
        _number("id"),
        _number("plan", nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_target"),
        sa.ForeignKeyConstraint(["plan"], ["plans.seq"], name="fk_target_plan"),
    )
    op.bulk_insert(target, [{"id": 1, "plan": None}])


def _rollouts() -> None:
    op.create_table(
        "rollouts",
        _number("number"),
        _text("generation"),
        _big("created_ms"),
        _text("who"),
        sa.Column("open", sa.Boolean, nullable=False),
        _bytes("state"),
        _number("base_plan", nullable=True),
        sa.PrimaryKeyConstraint("number", name="pk_rollouts"),
        sa.ForeignKeyConstraint(["base_plan"], ["plans.seq"], name="fk_rollouts_base_plan"),
    )
    is_open = sa.column("open", sa.Boolean).is_(True)
    op.create_index(
        "ix_rollouts_one_open",
        "rollouts",
        ["open"],
        unique=True,
        sqlite_where=is_open,
        postgresql_where=is_open,
    )
    op.create_table(
        "rollout_base",
        _number("rollout"),
        _text("entry"),
        sa.Column("body", sa.Text),
        sa.PrimaryKeyConstraint("rollout", "entry", name="pk_rollout_base"),
        sa.ForeignKeyConstraint(["rollout"], ["rollouts.number"], name="fk_rollout_base_rollout"),
        sa.ForeignKeyConstraint(["body"], ["bodies.digest"], name="fk_rollout_base_body"),
    )
    op.create_index("ix_rollout_base_body", "rollout_base", ["body"])


def _machines() -> None:
    op.create_table(
        "offers",
        _text("machine"),
        _number("epoch"),
        _big("counter"),
        _text("digest"),
        _bytes("signed"),
        _big("at_ms"),
        sa.PrimaryKeyConstraint("machine", name="pk_offers"),
    )
    op.create_table(
        "reports",
        _text("machine"),
        _big("received_ms"),
        _bytes("lives"),
        _bytes("report"),
        sa.PrimaryKeyConstraint("machine", name="pk_reports"),
    )
