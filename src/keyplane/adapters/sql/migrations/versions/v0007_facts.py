"""What machines say of themselves."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "facts",
        sa.Column("machine", sa.Text, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("facts", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("machine", name="pk_facts"),
    )
