"""What people said of entries, and what happened on the machines."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "words",
        sa.Column("entry", sa.Text, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("stop", sa.Boolean, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("entry", name="pk_words"),
    )
    op.create_table(
        "histories",
        sa.Column("machine", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("last", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("machine", "name", name="pk_histories"),
    )
    op.create_table(
        "occurrences",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("machine", sa.Text, nullable=False),
        sa.Column("entry", sa.Text, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("unit", sa.Text, nullable=False),
        sa.Column("act", sa.Text, nullable=False),
        sa.Column("cause", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_occurrences"),
    )
    op.create_index("ix_occurrences_machine", "occurrences", ["machine", "entry"])
