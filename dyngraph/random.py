"""Generator: a seed and a count of draws, from which every draw gets a key of its own.

Invariant: the state is these two numbers. Draw number `n` uses `jax.random.fold_in(key(seed), n)`,
so equal states give equal draws, whatever was drawn before and on whichever device.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import batches, devices, dtypes
from dyngraph.pure import current_pure
from dyngraph.tensor import Tensor, wrap

INITIAL_SEED = 67280421310721
"""The seed of a generator that was given none, as in PyTorch."""
_WORD = 2**32
_STATE_BYTES = 16


class Generator:
    """A stream of random draws, which every random function takes as `generator=`.

    `device` is kept for the reader: the numbers do not depend on it, and a draw may go to any
    device. Draws from several threads are all different; their order is the threads'.

    >>> g = dg.Generator().manual_seed(0)
    >>> g.initial_seed()
    0
    >>> first = dg.rand(2, generator=g)
    >>> bool((first == dg.rand(2, generator=g.manual_seed(0))).all())
    True
    """

    __slots__ = ("__weakref__", "_count", "_device", "_key", "_lock", "_seed")

    def __init__(self, device: Any = None) -> None:
        self._device = None if device is None else devices.device(device)
        self._lock = threading.Lock()
        self._seed = INITIAL_SEED
        self._count = 0
        self._key: jax.Array | None = None

    @property
    def device(self) -> devices.device:
        """The device that the generator was made for."""
        return devices.device("cpu") if self._device is None else self._device

    def manual_seed(self, seed: int) -> Generator:
        """Starts the stream of `seed`, -2**63 to 2**64 - 1, and returns the generator.

        Raises ValueError for a number outside. A negative seed counts from 2**64 down.
        """
        number = int(seed)
        if not -(2**63) <= number < 2**64:
            raise ValueError(
                f"seed {number} does not fit 64 bits. Pass a number from -2**63 to 2**64 - 1."
            )
        self._set(number % 2**64, 0)
        return self

    def seed(self) -> int:
        """Starts the stream of a seed that the operating system chose, and returns that seed."""
        self._set(secrets.randbits(64), 0)
        return self._seed

    def initial_seed(self) -> int:
        """The seed that the stream started from."""
        return self._seed

    def get_state(self) -> Tensor:
        """The state as a tensor of 16 bytes, which `set_state` takes back.

        >>> dg.Generator().get_state().shape
        dyngraph.Size([16])
        """
        with self._lock:
            words = np.array([self._seed, self._count], np.uint64)
        return wrap(_to_device(words.view(np.uint8)))

    def set_state(self, new_state: Tensor) -> None:
        """Continues from a state that `get_state` gave.

        Raises TypeError for what is no tensor of bytes, RuntimeError for one of another length.
        """
        if not isinstance(new_state, Tensor) or new_state.dtype != dtypes.uint8:
            found = new_state.dtype if isinstance(new_state, Tensor) else type(new_state).__name__
            raise TypeError(
                f"RNG state must be a uint8 Tensor, got {found}. Pass what get_state() returned."
            )
        if new_state.shape != (_STATE_BYTES,):
            raise RuntimeError(
                f"Expected a generator state of size {_STATE_BYTES} but found the input RNG state "
                f"size to be {list(new_state.shape)}. Pass what get_state() returned."
            )
        seed, count = np.array(new_state._cell.array).view(np.uint64).tolist()
        self._set(seed, count, restored=True)

    def clone_state(self) -> Generator:
        """A generator that goes on from here by itself."""
        clone = Generator(self._device)
        with self._lock:
            seed, count = self._seed, self._count
        clone._set(seed, count)
        return clone

    def take(self) -> tuple[jax.Array, np.uint32]:
        """What the next draw folds together: the key's two words, and the number of the draw.

        Inside `func.vmap` the words are those of the example, or RuntimeError is raised, as its
        `randomness` says.
        """
        pure = current_pure()
        if pure is not None:
            drawn = pure.take(self, is_default=self is default_generator)
            if drawn is not None:
                return batches.spread_key(drawn[0]), drawn[1]
        with self._lock:
            key, low = self._next()
            self._count += 1
        return batches.spread_key(key), low

    def next(self) -> tuple[jax.Array, np.uint32]:
        """What `take` will give, which is not drawn yet."""
        with self._lock:
            return self._next()

    def advance(self, draws: int) -> None:
        """Goes on as if so many draws had been taken."""
        with self._lock:
            if self._count // _WORD != (self._count + draws) // _WORD:
                self._key = None  # see Note [Streams longer than 2**32]
            self._count += draws

    def _next(self) -> tuple[jax.Array, np.uint32]:
        epoch, low = divmod(self._count, _WORD)
        if self._key is None or low == 0:
            # Note [Streams longer than 2**32]
            # fold_in takes 32 bits. After 2**32 draws the stream goes on as that of another
            # key, which differs in the upper word.
            words = ((self._seed // _WORD + epoch) % _WORD, self._seed % _WORD)
            self._key = _to_device(np.array(words, np.uint32))
        return self._key, np.uint32(low)

    def go_on(self, seed: int, count: int) -> None:
        """Goes on as the stream of `seed` does after `count` draws."""
        self._set(seed, count)

    def _set(self, seed: int, count: int, *, restored: bool = False) -> None:
        pure = current_pure()
        if pure is not None:
            pure.note_seed(self, seed, count, restored=restored)
        with self._lock:
            self._seed, self._count, self._key = seed, count, None

    def __getstate__(self) -> tuple[Any, int, int]:
        return self._device and str(self._device), self._seed, self._count

    def __setstate__(self, state: tuple[Any, int, int]) -> None:
        device, seed, count = state
        self.__init__(device)
        self._set(seed, count)

    def __repr__(self) -> str:
        return f"Generator(device='{self.device}', seed={self._seed}, draws={self._count})"


def _to_device(words: np.ndarray) -> jax.Array:
    with jax.ensure_compile_time_eval():  # a value that is kept must never be a tracer
        return jnp.asarray(words)


default_generator = Generator()
"""What draws that are given no generator take from, on every device."""


def fold(key: Any, count: Any) -> jax.Array:
    """The key of one draw from what `Generator.take` gave; runs inside the draw's kernel."""
    return jax.random.fold_in(jax.random.wrap_key_data(key, impl="threefry2x32"), count)


_folded = jax.jit(fold)


def draw_key(generator: Generator | None = None) -> jax.Array:
    """A fresh key for functions of `jax.random`; counts as one draw of the generator.

    >>> with dg.random.fork_rng():
    ...     bool((dg.random.draw_key() == dg.random.draw_key()).all())
    False
    """
    return _folded(*(default_generator if generator is None else generator).take())


def manual_seed(seed: int) -> Generator:
    """Starts the default generator's stream of `seed`, for all devices, and returns it.

    >>> a = dg.manual_seed(3) and dg.randn(2)
    >>> b = dg.manual_seed(3) and dg.randn(2)
    >>> bool((a == b).all())
    True
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Starts the default generator from a seed that the operating system chose; returns it.

    >>> chosen = dg.seed()
    >>> chosen == dg.initial_seed()
    True
    """
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the default generator started from.

    >>> dg.manual_seed(5).initial_seed() == dg.initial_seed()
    True
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The default generator's state, a tensor of bytes; later draws do not change it.

    >>> dg.get_rng_state().dtype
    dyngraph.uint8
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Continues the default generator from a state that `get_rng_state` gave.

    >>> state = dg.get_rng_state()
    >>> first = dg.rand(2)
    >>> dg.set_rng_state(state)
    >>> bool((first == dg.rand(2)).all())
    True
    """
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None, enabled: bool = True, **options: Any
) -> Iterator[None]:
    """Lets the block draw and seed as it likes: afterwards the default generator is as before.

    One generator serves all devices, so `devices` and `device_type` change nothing.

    >>> _ = dg.manual_seed(0)
    >>> with dg.random.fork_rng():
    ...     first = dg.rand(2)
    >>> bool((first == dg.rand(2)).all())
    True
    """
    if not enabled:
        yield
        return
    state = default_generator.get_state()
    try:
        yield
    finally:
        default_generator.set_state(state)


__all__ = [
    "Generator",
    "default_generator",
    "draw_key",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]
