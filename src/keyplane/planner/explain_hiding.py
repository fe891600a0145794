"""What an explanation shows of a value that may be a secret: that it is there, never what it is."""

from keyplane.documents.trees import is_list, is_table
from keyplane.model.module import Json
from keyplane.planner import clear

HIDDEN = "(hidden)"


def is_secret(name: str) -> bool:
    """Whether what is called so is a secret: a variable, or the last word of a setting's path."""
    return name.rpartition(".")[2].upper().replace("-", "_").endswith(clear.NAMES)


def shown(value: Json, *names: str) -> Json:
    """The value, hidden where one of its names is a secret's; and no URL with its password."""
    if value is None or value == "":
        return value
    return HIDDEN if any(map(is_secret, names)) else _without_passwords(value)


def _without_passwords(value: Json) -> Json:
    if isinstance(value, str):
        return clear.URL.sub(lambda url: url[0][: url.start(1) - url.start()] + HIDDEN + "@", value)
    if is_table(value):
        return {
            name: HIDDEN if isinstance(item, str) and item and is_secret(name)
            else _without_passwords(item)
            for name, item in value.items()
        }  # fmt: skip
    return [_without_passwords(item) for item in value] if is_list(value) else value
