"""Starlark in a process of its own, with a budget for each call."""
