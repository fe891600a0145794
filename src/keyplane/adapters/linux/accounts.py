"""Accounts by name: what a unit runs as, and whom a path belongs to."""

import grp
import os
import pwd
from dataclasses import dataclass

from keyplane.ports.host import HostError


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    name: str
    home: str
    uid: int
    gid: int
    groups: tuple[int, ...]

    @property
    def environment(self) -> dict[str, str]:
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name}


def is_root() -> bool:
    return os.geteuid() == 0


def account(name: str) -> Account:
    """By name, or by number as far as it has an account."""
    try:
        found = pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
    except KeyError:
        raise HostError(f"no account `{name}` on this machine") from None
    groups = tuple(os.getgrouplist(found.pw_name, found.pw_gid))
    return Account(
        name=found.pw_name, home=found.pw_dir, uid=found.pw_uid, gid=found.pw_gid, groups=groups
    )


def own_account() -> Account:
    uid, gid = os.geteuid(), os.getegid()
    try:
        found = pwd.getpwuid(uid)
    except KeyError:  # as in containers that are run under a number
        return Account(name=str(uid), home="/", uid=uid, gid=gid, groups=())
    return Account(name=found.pw_name, home=found.pw_dir, uid=uid, gid=gid, groups=())


def group_id(name: str) -> int:
    if name.isdecimal():
        return int(name)
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise HostError(f"no group `{name}` on this machine") from None


def user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
