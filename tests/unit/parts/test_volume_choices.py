"""Data that stays where it is, and whose it is from then on."""

from keyplane.model.names import EntryId
from keyplane.parts import volume_choices
from keyplane.parts.volume_messages import Inherited, Question
from tests.unit.rollout.values import plan, planned

DATA = planned(volumes={"data": {"path": "/var/lib/pg"}, "log": {"path": "/var/log/pg"}})
STORE = planned(volumes={"store": {"path": "/var/lib/pg"}})
BEFORE = plan(pg_alpha=DATA, web_alpha=planned())


def test_an_entry_under_another_name_starts_on_what_is_there() -> None:
    """Only of paths that both have."""
    after = plan(db_alpha=STORE, web_alpha=planned())
    assert volume_choices.inherited(BEFORE, after, ()) == [
        Inherited(entry="db:main@alpha", of="pg:main@alpha", volumes={"store": "/var/lib/pg"})
    ]


def test_what_stays_comes_or_goes_alone_inherits_nothing() -> None:
    for after in (
        BEFORE,
        plan(pg_alpha=DATA, db_alpha=STORE),  # the two conflict, which a row says
        plan(db_beta=STORE),  # another machine has other files
        plan(db_alpha=planned(volumes={"data": {"path": "/var/lib/db"}})),
        plan(),
    ):
        assert volume_choices.inherited(BEFORE, after, ()) == []


def test_what_is_asked_about_is_answered_and_not_told() -> None:
    """It comes from elsewhere, and what stands here is put aside."""
    asked = Question(entry=EntryId("db:main@alpha"), source=None, volumes={})
    assert volume_choices.inherited(BEFORE, plan(db_alpha=STORE), (asked,)) == []
