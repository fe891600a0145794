"""A text as a value of an interface's type, spelled in one way."""

import math
import re

from keyplane.model import reaction
from keyplane.model.interface import ValueType

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,3})?", re.ASCII)


def typed(text: str, kind: ValueType) -> str | None:
    """The value as it stands in a variable; None if the text is no value of the type."""
    text = text.strip()
    if "\0" in text:
        return None
    match kind:
        case ValueType.STRING:
            return text
        case ValueType.INTEGER:
            return str(int(text)) if _INTEGER.fullmatch(text) else None
        case ValueType.NUMBER:
            number = float(text) if _NUMBER.fullmatch(text) else math.inf
            return reaction.as_text(number) if math.isfinite(number) else None
        case ValueType.BOOLEAN:
            return text if text in {"true", "false"} else None
        case ValueType.LIST:
            return " ".join(text.split())
