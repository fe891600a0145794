"""The signals of Linux, by the names that a reload has for them: without `SIG`."""

from typing import Final

from keyplane.documents.rows import like, show

NAMES: Final = (
    "ABRT", "ALRM", "BUS", "CHLD", "CLD", "CONT", "FPE", "HUP", "ILL", "INT", "IO", "IOT", "KILL",
    "PIPE", "POLL", "PROF", "PWR", "QUIT", "RTMAX", "RTMIN", "SEGV", "STKFLT", "STOP", "SYS",
    "TERM", "TRAP", "TSTP", "TTIN", "TTOU", "URG", "USR1", "USR2", "VTALRM", "WINCH", "XCPU",
    "XFSZ",
)  # fmt: skip

PATTERN: Final = rf"{'|'.join(NAMES)}|(?:.|\n)*\$\{{(?:.|\n)*"
"""For the schema: one of them, or a text with a reference."""


def complaint(text: str) -> str | None:
    """What is wrong with a text that is to name one; a reference in it is not looked at."""
    if text in NAMES or "${" in text:
        return None
    near = like(text.upper().removeprefix("SIG"), NAMES)
    return f"{show(text)} is no signal" + (
        f": write `{near}`" if near else ", such as HUP, USR1 or TERM"
    )
