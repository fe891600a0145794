"""What each send carried, and whether the fleet is frozen."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "sends",
        sa.Column("machine", sa.Text, nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("counter", sa.BigInteger, nullable=False),
        sa.Column("carried", sa.LargeBinary, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("machine", name="pk_sends"),
    )
    op.create_table(
        "freezes",
        sa.Column("id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_freezes"),
    )
