"""jax.numpy, every function of it recorded."""
