"""The control plane as people's commands see it."""

from keyplane.ports.errors import PermanentError, TransientError


class ControlUnreachableError(TransientError):
    """No controller answers there."""


class ControlRefusedError(PermanentError):
    """The controller refused, and says why."""


class ControlSilentError(ControlUnreachableError):
    """It is there and took the question, and does not answer."""
