"""How much a unit may use, as its `limits` say it: texts with a unit, or with a reference."""

import re
from typing import Final

from keyplane.documents.rows import show
from keyplane.documents.shapes import Text

_REFERENCE: Final = r"(?:.|\n)*\$\{(?:.|\n)*"
"""What a reference comes to is the agent's to judge: here it is not looked at."""


def _amount(what: str, pattern: str, example: str) -> Text:
    written = re.compile(pattern, re.ASCII)

    def complaint(text: str) -> str | None:
        if written.fullmatch(text) or "${" in text:
            return None
        return f"{show(text)} is not {what}: write it like {example}"

    return Text(what, check=complaint, pattern=f"{pattern}|{_REFERENCE}", empty=False)


MEMORY: Final = _amount("an amount of memory", "[0-9]+[KMGT]?(?:i?B)?", "256M")
CPU: Final = _amount("a share of a processor", "0*[1-9][0-9]*%?", "50%")
TASKS: Final = _amount("a count of tasks", "0*[1-9][0-9]*", "100")
