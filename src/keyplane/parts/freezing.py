"""How a freeze of the fleet reads as the pause of a rollout."""

_SAID = "the fleet is frozen "


def pause(why: str) -> str:
    """Why a rollout is paused while the fleet is frozen; empty while it is not."""
    return f"{_SAID}{why}" if why else ""


def is_pause(paused: str) -> bool:
    """Whether a pause is a freeze's, and so ends with it."""
    return paused.startswith(_SAID)
