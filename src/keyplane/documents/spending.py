"""What the Starlark documents of one fleet may take together, and which of them took it.

Each is run under limits of its own; those say nothing of a hundred documents that all come to them.
"""

from keyplane.documents.evaluation import Fault, Value

SPENT_MAX = 4
"""Documents that came to a limit, which takes each some 2.5 seconds: whoever mends four of them learns
of the next ones then. The same for equal documents, on any machine that is not starved."""
USED_MAX_MS = 60_000
"""Of processor time: three hundred documents that just keep to their ten million steps."""
_NAMED = 3


class Spending:
    """Of one reading. Documents are run in one order for equal fleets."""

    def __init__(self) -> None:
        self._spent: list[str] = []
        self._used_ms: dict[str, int] = {}

    def ran(self, file: str, found: Value | Fault) -> None:
        self._used_ms[file] = found.used_ms
        if isinstance(found, Fault) and found.spent:
            self._spent.append(file)

    def refusal(self) -> str | None:
        """Why no further document is run; None as long as they are."""
        if len(self._spent) >= SPENT_MAX:
            return f"it was not run, as {_listed(self._spent)} came to a limit before it"
        if sum(self._used_ms.values()) > USED_MAX_MS:
            most = sorted(self._used_ms, key=lambda file: (-self._used_ms[file], file))[:_NAMED]
            return (
                f"it was not run, as those before it took {USED_MAX_MS // 1000} s of processor time "
                f"together, most of it {_listed(most)}"
            )
        return None


def _listed(files: list[str]) -> str:
    *first, last = files
    return f"{', '.join(first)} and {last}" if first else last
