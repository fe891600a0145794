"""What each revision was made by, from, and into."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("revisions", sa.Column("verb", sa.Text, nullable=False, server_default=""))
    op.add_column("revisions", sa.Column("parent", sa.Integer))
    op.add_column("revisions", sa.Column("generation", sa.Text))
    op.add_column("revisions", sa.Column("moved", sa.Integer))
    revisions = sa.table(
        "revisions", sa.column("number", sa.Integer), sa.column("generation", sa.Text)
    )
    plans = sa.table(
        "plans",
        sa.column("seq", sa.Integer),
        sa.column("revision", sa.Integer),
        sa.column("generation", sa.Text),
    )
    last = (
        sa.select(plans.c.generation)
        .where(plans.c.revision == revisions.c.number)
        .order_by(plans.c.seq.desc())
        .limit(1)
        .scalar_subquery()
    )
    op.execute(revisions.update().values(generation=last))
