"""Where dyngraph meets JAX's libraries: functions, modules and arrays, both ways."""

from dyngraph.interop import equinox as equinox, flax as flax
from dyngraph.interop.from_jax import from_jax as from_jax
from dyngraph.interop.functions import as_functions as as_functions
from dyngraph.interop.leaves import arrays_of as arrays_of, tensors_of as tensors_of
from dyngraph.interop.to_jax import to_jax as to_jax

__all__ = ["arrays_of", "as_functions", "equinox", "flax", "from_jax", "tensors_of", "to_jax"]
