"""How long ago something was, as people say it."""

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def ago(milliseconds: int) -> str:
    """`12 s ago`, in the largest unit that leaves a whole number; `just now` within a second."""
    seconds = milliseconds // 1000
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return "just now"
