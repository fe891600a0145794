"""Where the problems of one document are gathered, so that a reader sees all of them at once.

Every row is about one file and names the path in it. A row is never an exception.
"""

import bisect
import difflib
import json
from collections.abc import Collection, Iterable

from keyplane.model.diagnostic import Diagnostic
from keyplane.model.module import Json

Path = tuple[str, ...]

_ROWS_MAX = 500
"""Of one document: more than anybody mends at once, and few enough to print and to compare."""
_SHOWN_MAX = 100
"""Characters of a value in a message: a name of the greatest length still shows whole."""
_MEANT = 0.6
"""Of likeness, as difflib has it: below that, a name that was not meant would be proposed."""
_COMPARED_MAX = 200
"""Names that another is compared with: of more only those next to it, which begin as it does."""


class Rows:
    """The problems of one file, in the order in which they were met."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[Diagnostic] = []
        self.dropped: dict[Path, Json] = {}
        """What stands in the file and could not be read, as it is written there."""

    def add(self, code: str, path: Path, message: str, *resolution: str) -> None:
        if len(self.found) > _ROWS_MAX:
            return
        if len(self.found) == _ROWS_MAX:
            code, path, resolution = "wrong-type", (), ()
            message = f"more than {_ROWS_MAX} problems; the rest are not listed"
        self.found.append(
            Diagnostic(
                code=code,
                subject=_printable(self.file),
                path=_printable(".".join(path)),
                message=_printable(message),
                resolution=tuple(map(_printable, resolution)),
            )
        )

    def wrong(self, path: Path, message: str, *resolution: str) -> None:
        self.add("wrong-type", path, message, *resolution)

    def unknown(self, path: Path, owner: str, known: Iterable[str], elsewhere: str = "") -> None:
        """A field that `owner` does not have; `elsewhere` says who has it."""
        if len(self.found) >= _ROWS_MAX:
            self.add("unknown-field", path, "")
            return
        name = shorten(path[-1])
        names = sorted(known)
        if elsewhere:
            self.add("unknown-field", path, f"`{name}` is no field of {owner}: {elsewhere}")
            return
        close = nearest(path[-1], names)
        listed = ", ".join(names)
        if close is None:
            self.add("unknown-field", path, f"`{name}` is no field of {owner}")
        else:
            self.add(
                "unknown-field",
                path,
                f"`{name}` is no field of {owner}; the nearest is `{close}`",
                f"write `{close}`",
                f"the fields are {listed}",
            )

    def drop(self, path: Path, written: Json = None) -> None:
        """Note that what stood at the path was taken out, a row saying why."""
        self.dropped[path] = written

    def was_dropped(self, path: Path) -> bool:
        return is_dropped(path, self.dropped)


def is_dropped(path: Path, dropped: Collection[Path]) -> bool:
    """Whether what stands at the path was taken out, or what it stands in."""
    return any(path[:length] in dropped for length in range(len(path) + 1))


def any_dropped(path: Path, dropped: Collection[Path]) -> bool:
    """The same, or anything below it."""
    return is_dropped(path, dropped) or any(one[: len(path)] == path for one in dropped)


def _printable(text: str) -> str:
    """The text with what no UTF-8 can hold escaped: the name of a file may be any bytes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def like(name: str, known: Iterable[str]) -> str | None:
    """The known name that this one was meant to be, if it is much like one of them."""
    return nearest(name, known, _MEANT)


def nearest(name: str, known: Iterable[str], least: float = 0.0) -> str | None:
    """The known name most like this one. Only its beginning is compared: likeness is quadratic."""
    names = list(known)
    if len(names) > _COMPARED_MAX:
        names.sort()
        at = bisect.bisect(names, name)
        names = names[max(at - _COMPARED_MAX // 2, 0) : at + _COMPARED_MAX // 2]
    found = difflib.get_close_matches(name[:_SHOWN_MAX], names, 1, least)
    return found[0] if found else None


def show(value: Json) -> str:
    """The value as JSON, shortened."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    return shorten(json.dumps(value, ensure_ascii=False))


def shorten(text: str) -> str:
    return text if len(text) <= _SHOWN_MAX else text[: _SHOWN_MAX - 1] + "…"
