"""How a step says what it has shown, and what was expected where it has not. Runs no step."""

import time

from processes import Failed

STARTED = time.monotonic()


def ok(text):
    print(f"{seconds()}  ok  {text}")


def same(what, expected, got):
    if expected != got:
        raise Failed(f"{what}: expected {expected!r}, got {got!r}")


def seconds():
    """How long the checks have been running."""
    return f"{time.monotonic() - STARTED:6.0f} s"
