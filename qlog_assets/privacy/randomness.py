"""Where random bits come from, and only that: a secure source for what may be published, a seeded one for simulation.

Both are cipher keystreams behind one interface, so code that draws noise cannot tell them apart; the door can, by
`secure`, and refuses a draw made with the seeded one. No distribution other than the uniform lives here.
"""

from __future__ import annotations

import abc
import hashlib
import os
import threading
import weakref
from typing import ClassVar, NoReturn

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from qlog_assets.errors import ParameterError

KEY_BYTES = 32
# A counter-mode keystream of n blocks differs from random bits with advantage at most n²/2**129: 2**22 blocks a key
# keep that below 2**-85, and a fresh key costs microseconds.
BYTES_PER_KEY = 1 << 26
_ZEROS = bytes(1 << 18)
_NONCE = bytes(16)  # a key is never used twice, so the counter may start at zero every time


class RandomSource(abc.ABC):
    """A stream of independent uniform bits: AES-256 in counter mode, a new key every `BYTES_PER_KEY` bytes.

    The stream is one sequence of bytes whatever the sizes of the requests, so a seeded run does not depend on chunking
    here. Calls from several threads are serialised. A source cannot be copied or pickled: two copies would repeat
    each other's noise, and equal noise on two tables reveals their difference.
    """

    secure: ClassVar[bool]

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cipher: CipherContext | None = None
        self._left = 0
        self._keys_used = 0

    @property
    def used(self) -> bool:
        """Whether any bit of it was ever taken."""
        return self._keys_used > 0

    @abc.abstractmethod
    def _key(self, number: int) -> bytes:
        """The key of the `number`-th stretch of the stream."""

    def __reduce__(self) -> NoReturn:
        raise TypeError("a random source cannot be copied or pickled: the copy would repeat its stream")

    def _fill(self, out: memoryview) -> None:
        with self._lock:
            position, total = 0, len(out)
            while position < total:
                if self._cipher is None or self._left == 0:
                    algorithm = algorithms.AES(self._key(self._keys_used))
                    self._cipher = Cipher(algorithm, modes.CTR(_NONCE)).encryptor()
                    self._keys_used += 1
                    self._left = BYTES_PER_KEY
                step = min(total - position, self._left, len(_ZEROS))
                self._cipher.update_into(memoryview(_ZEROS)[:step], out[position : position + step])
                position += step
                self._left -= step

    def bytes(self, n: int) -> bytes:
        """`n` uniform bytes."""
        out = bytearray(n)
        self._fill(memoryview(out))
        return bytes(out)

    def words(self, n: int) -> np.ndarray:
        """`n` independent uniform 64-bit words."""
        out = np.empty(n, dtype="<u8")
        if n:
            self._fill(out.data.cast("B"))
        return out.view(np.uint64)

    def bigint(self, bits: int) -> int:
        """A uniform integer in [0, 2**bits)."""
        length = (bits + 7) // 8
        return int.from_bytes(self.bytes(length), "little") >> (8 * length - bits)

    def integers(self, bound: int, size: int) -> np.ndarray:
        """`size` independent uniform integers in [0, bound), bound < 2**63, exactly uniform.

        A word below the largest multiple of `bound` that fits 64 bits is uniform on whole cycles of `bound`, so its
        remainder is uniform; the others (fewer than one in two, for small bounds about none) are drawn again.
        """
        if not 1 <= bound < 1 << 63:
            raise ParameterError(f"a uniform integer needs a bound between 1 and 2**63 - 1, not {bound}")
        out = np.empty(size, dtype=np.int64)
        last = np.uint64((1 << 64) // bound * bound - 1)
        filled = 0
        while filled < size:
            words = self.words(min(size - filled, 1 << 20))
            words = words[words <= last]
            out[filled : filled + len(words)] = words % np.uint64(bound)
            filled += len(words)
        return out


_secure_sources: weakref.WeakSet[SecureRandom] = weakref.WeakSet()


class SecureRandom(RandomSource):
    """The only source whose draws may be published: every key comes from the operating system's entropy.

    After a fork the child drops the inherited key and takes a new one: a hook at fork does it, and a check of the
    process id catches a fork made behind Python's back.
    """

    secure = True

    def __init__(self) -> None:
        super().__init__()
        self._process = os.getpid()
        _secure_sources.add(self)

    def _key(self, number: int) -> bytes:
        return os.urandom(KEY_BYTES)

    def _forget(self) -> None:
        # The lock is replaced, not released: another thread of the parent may have held it at the fork.
        self._lock = threading.Lock()
        self._cipher = None
        self._process = os.getpid()

    def _fill(self, out: memoryview) -> None:
        if self._process != os.getpid():
            self._forget()
        super()._fill(out)


def _after_fork_in_child() -> None:
    for source in list(_secure_sources):
        source._forget()


os.register_at_fork(after_in_child=_after_fork_in_child)


class SeededRandom(RandomSource):
    """A reproducible stream for simulation, tests and studies: equal seeds give equal draws. Never published."""

    secure = False

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise ParameterError("a seed is a non-negative whole number")
        super().__init__()
        self._seed = b"qlog seeded source %d key %%d" % seed

    def _key(self, number: int) -> bytes:
        return hashlib.sha256(self._seed % number).digest()
