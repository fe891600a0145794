"""What an assignment shows: its own machine first, and apart from that what follows elsewhere."""

import click

from keyplane.cli import asking, progress
from keyplane.parts import change_messages as changes
from keyplane.parts import control_messages as messages
from keyplane.parts.state_dir import StateDir


def carry_out(state: StateDir, asked: changes.Asked, machine: str, manner: asking.Manner) -> int:
    return asking.carry_out(state, asked, manner, show=lambda proposal: _show(proposal, machine))


def _show(proposal: messages.Proposal, machine: str) -> None:
    if not progress.show_rows(proposal):
        return
    lines = progress.changed(proposal.diff)
    here = [line for entry, line in lines.items() if entry.endswith(f"@{machine}")]
    elsewhere = [line for entry, line in lines.items() if not entry.endswith(f"@{machine}")]
    click.echo(f"on {machine}:" if here else f"on {machine}: no difference")
    for line in here:
        click.echo(f"  {line}")
    if elsewhere:
        click.echo("elsewhere, by it:")
    for line in elsewhere:
        click.echo(f"  {line}")
    for line in progress.remarks(proposal.diff):
        click.echo(f"  {line}")
    click.echo(f"  {len(proposal.diff.untouched)} untouched")
    for line in progress.data(proposal):
        click.echo(line)
