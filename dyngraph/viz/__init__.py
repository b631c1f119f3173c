"""`dyngraph.viz`: pictures of graphs, and reports on what they keep and on how backward ran."""

from dyngraph.viz.picture import GraphPicture as GraphPicture, graph as graph

__all__ = ["GraphPicture", "graph"]
