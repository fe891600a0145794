"""Protocols of everything outside the core, and their errors. No implementation stands here."""
