"""Small changes of shape that every resolved value goes through."""

from keyplane.documents.trees import is_list, is_table
from keyplane.model import duration
from keyplane.planner import canonical, terms
from keyplane.planner.terms import Hole, Live, Lost, Tree


def as_written(filled: Tree) -> Tree:
    """What cannot be resolved, as it was written."""
    if terms.is_text(filled):
        shown = [part.text if isinstance(part, Lost | Hole | Live) else part for part in filled]
        joined = terms.joined(tuple(shown))
        if len(joined) == 1 and terms.is_value(joined[0]):
            return joined[0]
        return joined
    if is_table(filled):
        return {key: as_written(item) for key, item in filled.items()}
    if is_list(filled):
        return [as_written(item) for item in filled]
    return filled


def sorted_lists(fields: dict[str, Tree]) -> dict[str, Tree]:
    """Lists have no order, but for those of words of a command."""
    return {
        key: canonical.in_order(value)
        if is_list(value) and key != "command" and not any(_open_in(value))
        else value
        for key, value in fields.items()
    }


def _open_in(items: list[Tree]) -> list[bool]:
    return [True for _ in terms.texts_in(items, "")]


def period(value: Tree) -> Tree:
    """A duration in the largest unit that leaves a whole number."""
    parsed = duration.parse(value) if isinstance(value, str) else None
    return value if parsed is None else duration.print_ms(parsed.milliseconds)
