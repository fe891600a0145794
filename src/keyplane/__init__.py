"""Keyplane: a control plane that plans from keys."""

__version__ = "0.1.0"
