"""Audit: processes that were forked draw noise of their own."""

import os
import warnings
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from hdmm.measure import add_noise
from hdmm.privacy.sampling.stream import random_bytes
from tests.audit.verdict import Audit, Verdict

Draw = Callable[[], bytes]


def after_forks(draw: Draw, forks: int) -> list[bytes]:
    """What each forked child, and then the parent, draws next."""
    found = []
    for _ in range(forks):
        reader, writer = os.pipe()
        with warnings.catch_warnings():  # Python 3.12 warns of threads; this child only draws, and ends
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                os.write(writer, draw())
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            found.append(pipe.read())
        os.waitpid(child, 0)
    return [*found, draw()]


def run(make: Callable[[], Draw], forks: int) -> Verdict:
    """How many draws repeat another; eight values of scale 2⁴⁰ never do."""
    draw = make()
    draw()
    found = after_forks(draw, forks)
    empty = sum(not one for one in found)
    return Verdict("repeated draws", len(found) - len(set(found)) + empty, "<=", 0)


def noise() -> Draw:
    """Noise as `measure` adds it."""
    return lambda: b"".join(
        add_noise(np.zeros(4, np.int64), kind, Fraction(2**40)).tobytes() for kind in ("laplace", "gaussian")
    )


def cloned() -> Draw:
    """The fault: a stream whose key and position are copied with the process."""
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

    cipher = Cipher(ChaCha20(random_bytes(32), bytes(16)), mode=None).encryptor()
    return lambda: cipher.update(bytes(16))


AUDITS = [
    Audit("fresh noise after fork", run, noise, {"cloned generator": cloned}, 100, 20, "forks"),
]
