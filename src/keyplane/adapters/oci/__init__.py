"""Artifacts as OCI content: packing them, keeping them, fetching them."""
