"""Addresses of machines: of IP, or names of hosts."""

import ipaddress
import re

_LABEL = "[0-9A-Za-z_](?:[0-9A-Za-z_-]{0,61}[0-9A-Za-z_])?"
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
# A name that ends in a number would be taken for an address of IPv4 that it is not.
_HOST = rf"(?:{_LABEL}\.)*(?![0-9]+\.?$){_LABEL}\.?"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_IPV6 = rf"[0-9A-Fa-f]*:[0-9A-Fa-f:]*(?:{_IPV4})?(?:%[0-9A-Za-z_.-]+)?"
PATTERN = f"{_HOST}|{_IPV4}|{_IPV6}"
"""For the schema; what only looks like an address of IPv6 passes it."""
_NAME_MAX = 253
"""Characters of a host name, as DNS has it."""
_ADDRESS = re.compile(PATTERN, re.ASCII)


def is_address(text: str) -> bool:
    if ":" not in text:
        return len(text) <= _NAME_MAX and _ADDRESS.fullmatch(text) is not None
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
