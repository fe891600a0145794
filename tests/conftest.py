"""What holds for every test."""

import signal

# Whoever runs the suite behind his back, as `&` does, has it ignore interrupts, and with it each
# command that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
