"""The roots of all port errors. No library's exception leaves an adapter."""


class PortError(Exception):
    """Something outside did not do what was asked. The message is for a person."""


class TransientError(PortError):
    """The same call may succeed later."""


class PermanentError(PortError):
    """The same call fails again until something is changed."""
