"""The game server; what it does is no matter here."""
