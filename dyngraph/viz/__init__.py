"""`dyngraph.viz`: pictures of graphs, and reports on what they keep and on how backward ran."""

import dyngraph.viz.rich  # noqa: F401  (how notebooks show tensors and nodes)
from dyngraph.viz.buffers import SavedReport as SavedReport, saved as saved
from dyngraph.viz.memory import memory as memory
from dyngraph.viz.picture import GraphPicture as GraphPicture, graph as graph
from dyngraph.viz.provenance import provenance as provenance
from dyngraph.viz.replay import Trace as Trace, trace as trace
from dyngraph.viz.scopes import modules as modules, scope as scope

__all__ = [
    "GraphPicture",
    "SavedReport",
    "Trace",
    "graph",
    "memory",
    "modules",
    "provenance",
    "saved",
    "scope",
    "trace",
]
