"""Where the agent puts what is made on the machine, and what buckets are called on the bus.

The plan names these places in commands and variables, so they are fixed before any agent runs.
They hold no machine name: a machine sees only its own.
"""

_ROOT = "/run/keyplane"


def secret_path(instance: str, role: str, secret: str) -> str:
    return f"{_ROOT}/{instance}/{role}/secrets/{secret}"


def credential_path(instance: str, role: str, slot: str) -> str:
    return f"{_ROOT}/{instance}/{role}/credentials/{slot}"


def bucket_name(instance: str, role: str, bucket: str) -> str:
    """Names hold no underscore, so no two buckets have one name."""
    return f"{instance}_{role}_{bucket}"
