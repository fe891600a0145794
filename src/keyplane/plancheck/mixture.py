"""Whether what is declared in the middle of a rollout can be: entries of two plans together."""

from collections.abc import Iterable, Mapping

from keyplane.model.diagnostic import Diagnostic, in_order
from keyplane.model.documents import Documents
from keyplane.model.names import EntryId, split_entry
from keyplane.model.plan import Edge, Entry
from keyplane.plancheck import edges as ends
from keyplane.plancheck import machines


def check_mixture(
    entries: Mapping[EntryId, Entry],
    edges: Iterable[Edge],
    documents: Documents | None = None,
    *,
    sound: Mapping[EntryId, Entry] | None = None,
) -> list[Diagnostic]:
    """Rows for edges to nobody, and for what two entries of one machine both hold.

    A provider has to be there by its id alone: its key may be of the other plan than the one
    that its consumer was made with, until the consumer's own step. `edges` are those of the
    mixture: each consumer's of the plan that it is of.

    `sound` is a mixture in which no row was found, by the same documents: machines of which every
    entry is the very same again are not looked at anew.
    """
    asked = entries if sound is None else _otherwise(entries, sound)
    return in_order(
        [
            *ends.check_ends(entries.keys(), edges),
            *machines.check_together(asked, frozenset(), documents),
        ]
    )


def _otherwise(
    entries: Mapping[EntryId, Entry], sound: Mapping[EntryId, Entry]
) -> Mapping[EntryId, Entry]:
    """All entries of each machine that has another one than before, or one less."""
    moved = {split_entry(name)[2] for name, each in entries.items() if sound.get(name) is not each}
    moved.update(split_entry(name)[2] for name in sound if name not in entries)
    return {name: each for name, each in entries.items() if split_entry(name)[2] in moved}
