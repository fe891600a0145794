"""Fakes of every port, for the project's own tests and for authors of modules and drivers."""
