"""Random bits for noise: keys from the operating system, expanded by the stream cipher ChaCha20.

Every piece of at most a mebibyte has a key of its own: 256 fresh bits from the kernel, let go when the call returns.
Nothing is kept between calls, so that there is no counter to repeat, no state to guard between threads, and none that a
forked process or a restored snapshot of the machine could share. There is no seed.

A fresh key costs microseconds and the cipher is several times faster than the kernel: noise is drawn in blocks that
need tens of kibibytes at once. That the output may be taken for uniform bits is the first assumption of docs/noise.md.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

KEY_BYTES = 32
PIECE = 2**20  # bytes from one key, far below the 2**38 after which ChaCha20's block counter would repeat
_ZEROS = bytes(PIECE)


def random_bytes(count: int) -> bytes:
    """Return this many random bytes."""
    return b"".join(_keystream(min(PIECE, count - start)) for start in range(0, count, PIECE))


def random_words(count: int) -> NDArray[np.uint64]:
    """Return this many random words of 64 bits, in a read-only array."""
    return np.frombuffer(random_bytes(8 * count), dtype=np.uint64)


def _keystream(count: int) -> bytes:
    """Return the first bytes of the keystream of a fresh key; with a fresh key, the nonce may be zero."""
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

    cipher = Cipher(ChaCha20(_fresh_key(), bytes(16)), mode=None)
    return cipher.encryptor().update(memoryview(_ZEROS)[:count])


def _fresh_key() -> bytes:
    return os.urandom(KEY_BYTES)  # noqa: TID251 - the one place where the stream takes the kernel's randomness
