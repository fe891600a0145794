"""`keyplane set`: one setting of one instance, without an editor."""

import sys
from pathlib import Path

import click

from keyplane.cli import asking, fleets
from keyplane.parts import change_messages as changes


@click.command("set", context_settings={"ignore_unknown_options": True})
@click.argument("place", metavar="INSTANCE[.ROLE].SETTING")
@click.argument("value", metavar="VALUE")
@fleets.fleet_option
@asking.options
def command(place: str, value: str, directory: Path | None, **manner: bool | str) -> None:
    """Set a value, as `keyplane set mygame-eu.server.slots 64`.

    The role may be left out where one role alone has the setting. VALUE is of the setting's type:
    a list is written as JSON. Shows what it costs, asks, and makes a revision of it.
    """
    state = fleets.state_of(directory)
    asked = changes.SetValue(place=place, value=value)
    sys.exit(asking.carry_out(state, asked, asking.Manner(**manner)))  # type: ignore[arg-type]
