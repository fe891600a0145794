"""The command line: a front end over `parts`. Each command is a module, imported when it is used."""


def main() -> None:
    """As the script calls it that an earlier checkout was installed with."""
    from keyplane.cli import registry

    registry.main()
