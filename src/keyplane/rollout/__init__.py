"""The ordered execution of a plan's difference. Pure: events in, effects out; no clock, no I/O."""
