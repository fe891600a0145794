"""Values only: what documents, plans, declarations and reports are. No behaviour beyond invariants."""
