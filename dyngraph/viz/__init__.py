"""`dyngraph.viz`: pictures of graphs, and reports on what they keep and on how backward ran."""

from dyngraph.viz.buffers import SavedReport as SavedReport, saved as saved
from dyngraph.viz.memory import memory as memory
from dyngraph.viz.picture import GraphPicture as GraphPicture, graph as graph
from dyngraph.viz.replay import Trace as Trace, trace as trace

__all__ = ["GraphPicture", "SavedReport", "Trace", "graph", "memory", "saved", "trace"]
