"""What people said of entries: that one stops, or starts again. Decides only which word holds.

A stop holds until a start that comes to this machine later, said here or to the controller.
Words of the controller stand in each declaration, so each is heeded once, by its number: what
was said here after it came is not undone by hearing it again.
"""

from keyplane.converge.draft import Draft
from keyplane.converge.frozen import replace
from keyplane.model.declaration import Stop
from keyplane.model.names import EntryId
from keyplane.model.occurrence import Act, Cause


def stop(draft: Draft, entry: EntryId, said: Stop, *, here: bool) -> None:
    """Who stopped it first is told: another stop adds nothing. `here`: on the machine itself."""
    if entry not in draft.stops:
        draft.stops[entry] = said
        _note(draft, entry, Act.STOP, said.who, here=here)


def start(draft: Draft, entry: EntryId, who: str, *, here: bool) -> None:
    """Let it run again, also what would not be started again by itself."""
    draft.stops.pop(entry, None)
    _note(draft, entry, Act.START, who, here=here)
    memory = draft.memory(entry)
    if memory is None:
        return
    for unit, each in memory.units.items():
        again = replace(each, down=False, deaths=0, unstartable=False)
        draft.remember(entry, unit, again if each.up else replace(again, why=Cause.PERSON))


def _note(draft: Draft, entry: EntryId, act: Act, who: str, *, here: bool) -> None:
    detail = f"by {who}, on the machine" if here else f"by {who}"
    draft.note(entry, None, act, Cause.PERSON, detail, who=who if here else "")


def heed(draft: Draft) -> None:
    """Take in the words that came with the declaration, each once."""
    for entry, wanted in draft.state.wanted.items():
        word = wanted.declared.word
        if word is None or word.number <= draft.words.get(entry, 0):
            continue
        draft.words[entry] = word.number
        if word.stop:
            stop(draft, entry, Stop(who=word.who, since_ms=word.at_ms), here=False)
        else:
            start(draft, entry, word.who, here=False)
