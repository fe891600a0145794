"""`python -m keyplane.cli`: the same as `keyplane`."""

from keyplane.cli.registry import main

main()
