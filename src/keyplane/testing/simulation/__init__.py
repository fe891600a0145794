"""A whole fleet in one thread on virtual time, with faults drawn from a seed.

The controllers, the agents and all that they decide are the product's own; machines, bus, store
and inventory are in memory and fail as the seed says. The same seed is the same run, to the last
event, on any machine.
"""
