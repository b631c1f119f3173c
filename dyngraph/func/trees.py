"""Trees of Python containers with tensors in them: flattened, matched and put together again.

Containers are tuples, named tuples, lists, dicts, and what is registered with `jax.tree_util`. As
in PyTorch, and other than in JAX, None is a leaf and a dict keeps the order of its keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax


class Spec(NamedTuple):
    """The structure of a tree: the container, what tells its parts apart, and their structures.

    `container` is None for a leaf.
    """

    container: Any
    keys: Any = None
    parts: tuple[Spec, ...] = ()

    def __repr__(self) -> str:
        if self.container is None:
            return "*"
        if isinstance(self.keys, tuple):
            pairs = zip(self.keys, self.parts, strict=True)
            return f"{{{', '.join(f'{k!r}: {p!r}' for k, p in pairs)}}}"
        parts = ", ".join(map(repr, self.parts))
        if self.container is tuple:
            return f"({parts},)" if len(self.parts) == 1 else f"({parts})"
        return f"[{parts}]" if self.container is list else f"{self.container}({parts})"


LEAF = Spec(None)


def _open(tree: Any) -> tuple[Any, Any, Sequence[Any]]:
    """Container, keys and parts of a tree; container None for a leaf."""
    if isinstance(tree, dict):
        return type(tree), tuple(tree), list(tree.values())
    if isinstance(tree, (tuple, list)):
        return type(tree), None, tree
    if tree is None:
        return None, None, ()
    parts, treedef = jax.tree_util.tree_flatten(tree, is_leaf=lambda part: part is not tree)
    if jax.tree_util.treedef_is_leaf(treedef):
        return None, None, ()
    return treedef, None, parts


def flatten(tree: Any) -> tuple[list[Any], Spec]:
    """The leaves of a tree, from left to right, and its structure."""
    container, keys, parts = _open(tree)
    if container is None:
        return [tree], LEAF
    leaves: list[Any] = []
    specs = []
    for part in parts:
        found, spec = flatten(part)
        leaves += found
        specs.append(spec)
    return leaves, Spec(container, keys, tuple(specs))


def unflatten(spec: Spec, leaves: Sequence[Any]) -> Any:
    """The tree of that structure with these leaves."""
    return _build(spec, iter(leaves))


def _build(spec: Spec, leaves: Iterator[Any]) -> Any:
    container, keys, specs = spec
    if container is None:
        return next(leaves)
    parts = [_build(s, leaves) for s in specs]
    if keys is not None:
        made = {k: v for k, v in zip(keys, parts, strict=True)}
        return made if container is dict else container(made)
    if isinstance(container, jax.tree_util.PyTreeDef):
        return container.unflatten(parts)
    if hasattr(container, "_fields"):
        return container(*parts)
    return container(parts)


def match(spec: Spec, tree: Any) -> list[Any] | None:
    """The leaves of a tree of that structure, in its order; None where the structure is another."""
    leaves = broadcast(spec, tree)
    if leaves is None or len(flatten(tree)[0]) != len(leaves):
        return None
    return leaves


def broadcast(spec: Spec, prefix: Any) -> list[Any] | None:
    """For each leaf of that structure the leaf of `prefix`, which may end earlier; None where the
    structure is another."""
    container, keys, parts = _open(prefix)
    if container is None:
        return [prefix] * _count(spec)
    if container != spec.container or len(parts) != len(spec.parts):
        return None
    if keys is not None:
        if set(keys) != set(spec.keys):
            return None
        parts = [prefix[k] for k in spec.keys]
    leaves: list[Any] = []
    for s, part in zip(spec.parts, parts, strict=True):
        found = broadcast(s, part)
        if found is None:
            return None
        leaves += found
    return leaves


def _count(spec: Spec) -> int:
    return 1 if spec.container is None else sum(map(_count, spec.parts))


def map_leaves(function: Any, tree: Any) -> Any:
    """The tree with `function` of each leaf."""
    leaves, spec = flatten(tree)
    return unflatten(spec, [function(leaf) for leaf in leaves])
