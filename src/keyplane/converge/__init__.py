"""The agent's brain: what one machine should do next. Sans-IO: (state, event) -> (state, effects).

`brain.step` folds an event into the state and lets `reconciler` compare what is declared with
what the ledger says and with what was observed. It awaits nothing and reads no clock; the shell
that feeds it is `parts.agent`.
"""
