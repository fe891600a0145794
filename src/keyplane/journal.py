"""Structured logs of shells: an event and its keys, one line each on stderr.

On the standard library alone: an agent that idles on every machine pays for what it imports. The
core never logs; it returns what it has to say.
"""

import json
import logging
import sys
import time
from typing import Any

_ROOT = "keyplane"
_OWN = frozenset({"level", "part", "module", "event"})
_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/@+,")


class Journal:
    """Says what happens in one part, with the keys that are bound to it."""

    def __init__(self, name: str, **bound: Any) -> None:
        self._logger = logging.getLogger(f"{_ROOT}.{name}")
        self._bound = bound

    def bind(self, **keys: Any) -> "Journal":
        """The same part with further keys in each line."""
        other = Journal("")
        other._logger = self._logger
        other._bound = {**self._bound, **keys}
        return other

    def info(self, event: str, **keys: Any) -> None:
        self._say(logging.INFO, event, keys)

    def warning(self, event: str, **keys: Any) -> None:
        self._say(logging.WARNING, event, keys)

    def error(self, event: str, **keys: Any) -> None:
        self._say(logging.ERROR, event, keys)

    def _say(self, level: int, event: str, keys: dict[str, Any]) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, event, extra={"keys": {**self._bound, **keys}})


class _Lines(logging.Formatter):
    """`TIME level=… part=… module=… event=… key=value …`.

    A value that has blanks or quotes is a JSON string, and no value has a line's end in it.
    """

    converter = time.gmtime

    def __init__(self, part: str) -> None:
        super().__init__()
        self._part = part

    def format(self, record: logging.LogRecord) -> str:
        keys: dict[str, Any] = getattr(record, "keys", {})
        at = self.formatTime(record, "%Y-%m-%dT%H:%M:%S")
        said = {
            "level": record.levelname.lower(),
            "part": self._part,
            "module": record.name.removeprefix(f"{_ROOT}."),
            "event": record.getMessage(),
            **{f"{name}_" if name in _OWN else name: value for name, value in keys.items()},
        }
        words = [f"{name}={_value(value)}" for name, value in said.items()]
        line = " ".join((f"{at}.{int(record.msecs):03d}Z", *words))
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _value(value: Any) -> str:
    text = str(value)
    return text if text and set(text) <= _BARE else json.dumps(text, ensure_ascii=False)


def begin(part: str) -> None:
    """Send what this process logs to stderr. Called once, by the process's main."""
    sink = logging.StreamHandler(sys.stderr)
    sink.setFormatter(_Lines(part))
    root = logging.getLogger()
    root.handlers[:] = [sink]
    root.setLevel(logging.WARNING)
    logging.getLogger(_ROOT).setLevel(logging.INFO)
