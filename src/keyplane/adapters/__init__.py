"""The outside world behind the ports. Chosen in `parts.main` alone."""
