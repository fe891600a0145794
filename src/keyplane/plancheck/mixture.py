"""Whether what is declared in the middle of a rollout can be: entries of two plans together."""

from collections.abc import Iterable, Mapping

from keyplane.model.diagnostic import Diagnostic, in_order
from keyplane.model.documents import Documents
from keyplane.model.names import EntryId
from keyplane.model.plan import Edge, Entry
from keyplane.plancheck import edges as ends
from keyplane.plancheck import machines


def check_mixture(
    entries: Mapping[EntryId, Entry],
    edges: Iterable[Edge],
    documents: Documents | None = None,
) -> list[Diagnostic]:
    """Rows for edges to nobody, and for what two entries of one machine both hold.

    A provider has to be there by its id alone: its key may be of the other plan than the one
    that its consumer was made with, until the consumer's own step. `edges` are those of the
    mixture: each consumer's of the plan that it is of.
    """
    return in_order(
        [
            *ends.check_ends(entries.keys(), edges),
            *machines.check_together(entries, frozenset(), documents),
        ]
    )
