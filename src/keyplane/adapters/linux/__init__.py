"""The machine itself: files, archives, processes under shims, probes."""
