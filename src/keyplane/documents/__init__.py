"""Text to model and diagnostics: every document kind, and the references inside strings."""
