"""The inventory in SQLite or PostgreSQL. Slow to import: only what opens one may import it."""
