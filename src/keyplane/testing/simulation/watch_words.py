"""What people said of the entries of one machine, and whether it was heeded."""

from collections.abc import Mapping

from keyplane.converge.state import Ledger
from keyplane.model.declaration import Declaration, Word
from keyplane.model.names import EntryId

LATELY_S = 1.0
"""What is said at a machine is in its ledger by then."""


class WordWatch:
    """Words to a controller go out with declarations; those at a machine go into its ledger."""

    def __init__(self) -> None:
        self._said: dict[EntryId, Word] = {}
        """The last one on each entry, of those that are above what was heeded."""
        self._here_s: dict[EntryId, float] = {}

    def said_here(self, entry: EntryId, now_s: float) -> None:
        self._here_s[entry] = now_s

    def said(self, entry: EntryId, word: Word, ledger: Ledger | None) -> None:
        """One is written down in the inventory."""
        if word.number > (ledger.words.get(entry, 0) if ledger else 0):
            self._said[entry] = word
        else:
            # A clock went back, and the inventory was restored from before what was heeded.
            self._said.pop(entry, None)

    def lost(self) -> None:
        """The inventory is an older one, in which these may not be."""
        self._said.clear()

    def unheeded(
        self, declaration: Declaration | None, ledger: Ledger | None, words: Mapping[EntryId, Word]
    ) -> str:
        """An entry that is declared, of which a word still holds that the ledger knows not."""
        heeded: Mapping[EntryId, int] = ledger.words if ledger else {}
        for entry, word in self._said.items():
            declared = declaration is not None and entry in declaration.entries
            if declared and words.get(entry) == word and heeded.get(entry, 0) < word.number:
                return entry
        return ""

    def heeded(
        self, declaration: Declaration | None, before: Ledger | None, after: Ledger, now_s: float
    ) -> tuple[list[EntryId], str]:
        """Entries that a newly heeded word lets run; and one where the contrary came of it."""
        started: list[EntryId] = []
        wrong = ""
        for entry, number in after.words.items():
            if before is not None and before.words.get(entry) == number:
                continue
            declared = None if declaration is None else declaration.entries.get(entry)
            word = None if declared is None else declared.word
            if word is None or word.number != number:
                continue
            if not word.stop:
                started.append(entry)
            # What was said on the machine in the same turn may stand in the same ledger.
            lately = now_s - self._here_s.get(entry, -9.0) < LATELY_S
            if not lately and word.stop != (entry in after.stops):
                wrong = f"{entry} is to {'stop' if word.stop else 'start'}"
        return started, wrong
