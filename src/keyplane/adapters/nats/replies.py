"""How a controller says, in place of an answer, that it could not do what was asked."""

from nats.aio.msg import Msg

from keyplane.ports.bus import BusUnavailableError

_HEADER = "Keyplane-Failed"


def failure(cause: str) -> dict[str, str]:
    """The headers of an answer that is none."""
    return {_HEADER: cause.encode("ascii", "backslashreplace").decode() or "no cause given"}


def answer_of(message: Msg) -> bytes:
    cause = (message.headers or {}).get(_HEADER)
    if cause is not None:
        raise BusUnavailableError(f"the controller could not do it: {cause}")
    return message.data
