"""By which request a rollout was asked for."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("rollouts", sa.Column("request", sa.Text, nullable=False, server_default=""))
