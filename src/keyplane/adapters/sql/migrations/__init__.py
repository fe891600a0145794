"""The migrations; run by `migrate` alone."""
