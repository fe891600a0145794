"""What the kernel refuses, as the port's errors."""

import contextlib
import errno
from collections.abc import Generator

from keyplane.ports.host import HostBusyError, HostError

_PASSES = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""What may be otherwise a minute later, with nothing changed by the fleet's text."""


@contextlib.contextmanager
def about(subject: str) -> Generator[None, None, None]:
    """Errors of the body, named by what it was about."""
    try:
        yield
    except OSError as error:
        kind = HostBusyError if error.errno in _PASSES else HostError
        raise kind(f"{subject}: {error.strerror or error}") from error
