"""The loops, timers and leases around the core. Wired together in `main` alone."""
