"""Permits to stop members of guarded sets, and machines that are cordoned."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "permits",
        sa.Column("entry", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("entry", name="pk_permits"),
    )
    op.create_table(
        "cordons",
        sa.Column("machine", sa.Text, nullable=False),
        sa.Column("drain", sa.Boolean, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("machine", name="pk_cordons"),
    )
