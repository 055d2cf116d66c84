"""The sources of random bits: reproducible where seeded, never repeating where secure, uniform in both.

Statistical tests use seeded streams, so they are deterministic; with a random seed each would fail wrongly with
probability 1e-6.
"""

from __future__ import annotations

import copy
import ctypes
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from scipy import stats

from qlog_assets.errors import ParameterError
from qlog_assets.privacy import randomness
from qlog_assets.privacy.randomness import BYTES_PER_KEY, RandomSource, SecureRandom, SeededRandom

FALSE_ALARM = 1e-6
WORDS = 4096


def in_fork(source: RandomSource, fork=os.fork, first=lambda: None) -> np.ndarray:
    """What a forked child draws from the source it inherited, after doing something first."""
    reader, writer = os.pipe()
    child = fork()
    if child == 0:
        status = 1
        try:
            first()
            os.close(reader)
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(source.words(WORDS).tobytes())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        drawn = np.frombuffer(pipe.read(), dtype=np.uint64)
    assert os.waitpid(child, 0)[1] == 0
    assert len(drawn) == WORDS
    return drawn


def assert_nothing_repeats(*streams: np.ndarray) -> None:
    """64-bit words of independent streams this short collide with a probability below 1e-10."""
    together = np.concatenate(streams)
    assert len(np.unique(together)) == len(together)


def test_forked_children_never_repeat_the_parents_or_each_others_stream():
    source = SecureRandom()
    before = source.words(WORDS)
    children = [in_fork(source) for _ in range(3)]
    assert_nothing_repeats(before, *children, source.words(WORDS))


def test_a_fork_that_python_does_not_see_still_gets_a_new_key():
    source = SecureRandom()
    before = source.words(WORDS)
    behind_pythons_back = ctypes.PyDLL(None).fork
    assert_nothing_repeats(before, in_fork(source, behind_pythons_back), source.words(WORDS))


def test_a_child_with_its_grandparents_process_id_still_gets_a_new_key():
    """Process ids come round again, so the fork itself must renew the key, not only a changed id."""
    source = SecureRandom()
    before = source.words(WORDS)

    def look_like_the_parent() -> None:
        source._process = os.getpid()

    assert_nothing_repeats(before, in_fork(source, first=look_like_the_parent), source.words(WORDS))


def test_a_child_forked_while_another_thread_draws_does_not_hang():
    source = SecureRandom()
    source._lock.acquire()
    try:
        child = in_fork(source)
    finally:
        source._lock.release()
    assert_nothing_repeats(child, source.words(WORDS))


def test_two_processes_never_share_a_stream():
    program = (
        "import sys; from qlog_assets.privacy.randomness import SecureRandom;"
        f"sys.stdout.buffer.write(SecureRandom().bytes(8 * {WORDS}))"
    )
    processes = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) for _ in range(2)]
    streams = [np.frombuffer(process.communicate()[0], dtype=np.uint64) for process in processes]
    assert [len(stream) for stream in streams] == [WORDS, WORDS]
    assert_nothing_repeats(*streams)


def test_two_secure_sources_of_one_process_differ():
    assert_nothing_repeats(SecureRandom().words(WORDS), SecureRandom().words(WORDS))


def test_threads_sharing_a_source_never_get_the_same_bits():
    source = SecureRandom()
    streams: list[np.ndarray] = []

    def draw() -> None:
        streams.extend(source.words(1000) for _ in range(20))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(streams) == 80
    assert_nothing_repeats(*streams)


@pytest.mark.parametrize("source", [SecureRandom(), SeededRandom(1)])
def test_a_source_cannot_be_copied(source):
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="repeat its stream"):
            attempt(source)


def test_only_the_secure_source_says_it_is_secure():
    assert SecureRandom.secure is True
    assert SeededRandom.secure is False


def test_equal_seeds_give_equal_streams_and_others_do_not():
    assert SeededRandom(7).bytes(1000) == SeededRandom(7).bytes(1000)
    assert_nothing_repeats(*(SeededRandom(seed).words(WORDS) for seed in (0, 1, 7, 10**40)))


@pytest.mark.parametrize("seed", [-1, 1.0, "1", None, True])
def test_a_seed_that_is_not_a_whole_number_is_refused(seed):
    with pytest.raises(ParameterError):
        SeededRandom(seed)


def test_the_stream_does_not_depend_on_the_sizes_of_requests():
    pieces, whole = SeededRandom(3), SeededRandom(3)
    parts = pieces.bytes(5) + pieces.words(3).tobytes() + pieces.bytes(0) + pieces.bytes(1000)
    assert parts == whole.bytes(5 + 24 + 1000)


@pytest.mark.parametrize("make", [SecureRandom, lambda: SeededRandom(11)])
def test_the_key_changes_after_its_share_of_output(make):
    source = make()
    first = source.words(WORDS)
    source.words(BYTES_PER_KEY // 8 - WORDS - 2)
    across = source.words(WORDS)  # two words from the old key, the others from the new one
    assert source._keys_used == 2
    assert_nothing_repeats(first, across)


def test_the_stream_across_a_change_of_key_does_not_depend_on_request_sizes(monkeypatch):
    monkeypatch.setattr(randomness, "BYTES_PER_KEY", 100)
    pieces, whole = SeededRandom(3), SeededRandom(3)
    assert b"".join(pieces.bytes(7) for _ in range(100)) == whole.bytes(700)


def test_every_bit_of_a_word_is_a_fair_coin():
    """The largest of 64 deviations from one half; false-alarm rate 1e-6 by the union bound."""
    words = SeededRandom(5).words(200_000)
    ones = np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1).sum(axis=0, dtype=np.int64)
    scores = (ones - 100_000) / np.sqrt(50_000)
    assert np.abs(scores).max() < stats.norm.isf(FALSE_ALARM / 128)


@pytest.mark.parametrize("bound", [1, 2, 10, 1000])
def test_integers_are_uniform(bound):
    drawn = SeededRandom(bound).integers(bound, 200_000)
    assert drawn.dtype == np.int64
    assert stats.chisquare(np.bincount(drawn, minlength=bound)).pvalue > FALSE_ALARM if bound > 1 else not drawn.any()


def test_integers_below_a_bound_that_does_not_divide_the_word_are_not_biased():
    """Remainders of unrejected words would fall below a third of 3·2**61 with probability 3/8, not 1/3."""
    drawn = SeededRandom(2).integers(3 << 61, 200_000)
    assert 0 <= drawn.min() <= drawn.max() < 3 << 61
    assert stats.chisquare(np.bincount(drawn >> 61)).pvalue > FALSE_ALARM


def test_the_largest_bound_is_served_and_bounds_outside_are_refused():
    drawn = SeededRandom(2).integers((1 << 63) - 1, 1000)
    assert 0 <= drawn.min() <= drawn.max() < (1 << 63) - 1
    for bound in (0, -5, 1 << 63):
        with pytest.raises(ParameterError):
            SeededRandom(2).integers(bound, 1)


@pytest.mark.parametrize("bits", [1, 7, 8, 64, 129])
def test_big_integers_fill_their_bits_and_no_more(bits):
    source = SeededRandom(bits)
    drawn = [source.bigint(bits) for _ in range(200)]
    assert min(drawn) >= 0
    assert max(drawn).bit_length() == bits


def test_nothing_asked_is_nothing_drawn():
    source = SeededRandom(1)
    assert source.bytes(0) == b""
    assert len(source.words(0)) == len(source.integers(5, 0)) == 0
    assert source.bytes(8) == SeededRandom(1).bytes(8)
