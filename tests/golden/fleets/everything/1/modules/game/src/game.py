"""A shipped program; what it does is no matter."""

print("game")
