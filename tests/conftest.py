"""What holds for every test."""

import signal

from hypothesis import HealthCheck, settings

# How long an example takes says how busy the machine is, and no more.
settings.register_profile(
    "keyplane", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("keyplane")

# Whoever runs the suite behind his back, as `&` does, has it ignore interrupts, and with it each
# command that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
