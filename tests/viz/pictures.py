"""What a picture shows, read from its SVG."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import NamedTuple

from dyngraph.viz.lettering import width_of

SVG = "{http://www.w3.org/2000/svg}"


class Rectangle(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: "Rectangle") -> bool:
        apart = self.right <= other.left or other.right <= self.left
        return not (apart or self.bottom <= other.top or other.bottom <= self.top)

    def holds(self, other: "Rectangle") -> bool:
        in_x = self.left <= other.left and other.right <= self.right
        return in_x and self.top <= other.top and other.bottom <= self.bottom

    def has(self, x: float, y: float, margin: float = 0.5) -> bool:
        in_x = self.left + margin < x < self.right - margin
        return in_x and self.top + margin < y < self.bottom - margin


class Parsed:
    """The rectangles, texts and arrows of a picture, where they are seen."""

    def __init__(self, svg: str) -> None:
        root = ET.fromstring(svg)
        left, top, width, height = map(float, root.attrib["viewBox"].split())
        self.whole = Rectangle(left, top, left + width, top + height)
        self.boxes: list[Rectangle] = []
        self.labels: list[Rectangle] = []
        self.texts: list[tuple[str, Rectangle]] = []
        self.arrows: list[str] = []
        self.titles: list[str] = []
        for element, shift in _elements(root, 0.0):
            name = element.get("class", "")
            if element.tag == f"{SVG}rect" and name in ("dyngraph-box", "dyngraph-label"):
                mine = self.boxes if name == "dyngraph-box" else self.labels
                mine.append(_rectangle(element, shift))
            elif element.tag == f"{SVG}text":
                self.texts.append((element.text or "", _extent(element, shift)))
            elif name == "dyngraph-arrow":
                self.arrows.append(element.attrib["d"])
                self.titles.append(element.findtext(f"{SVG}title", ""))


def _elements(parent: ET.Element, shift: float) -> Iterator[tuple[ET.Element, float]]:
    moved = re.match(r"translate\((.*)\)", parent.get("transform", ""))
    shift += float(moved[1]) if moved else 0.0
    for element in parent:
        yield element, shift
        yield from _elements(element, shift)


def _rectangle(element: ET.Element, shift: float) -> Rectangle:
    x, y, width, height = (float(element.attrib[n]) for n in ("x", "y", "width", "height"))
    return Rectangle(x + shift, y, x + shift + width, y + height)


def _extent(element: ET.Element, shift: float) -> Rectangle:
    size, x, y = (float(element.attrib[n]) for n in ("font-size", "x", "y"))
    width = width_of(element.text or "", size, bold="font-weight" in element.attrib)
    left = (
        x + shift - {"start": 0.0, "middle": width / 2, "end": width}[element.attrib["text-anchor"]]
    )
    return Rectangle(left, y - 0.8 * size, left + width, y + 0.2 * size)


def along(path: str) -> Iterator[tuple[float, float]]:
    """Points of a path of M, V and C commands, close to each other."""
    x = y = 0.0
    for command, rest in re.findall(r"([MVC])([^MVC]*)", path):
        numbers = list(map(float, rest.split()))
        if command == "M":
            x, y = numbers
        elif command == "V":
            for i in range(7):
                yield x, y + (numbers[0] - y) * i / 6
            y = numbers[0]
        else:
            for start in range(0, len(numbers), 6):
                points = [(x, y), *zip(*[iter(numbers[start : start + 6])] * 2, strict=True)]
                for i in range(17):
                    yield _on_cubic(points, i / 16)
                x, y = points[-1]


def _on_cubic(points: list[tuple[float, float]], t: float) -> tuple[float, float]:
    weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
    x = sum([w * p[0] for w, p in zip(weights, points, strict=True)])
    return x, sum([w * p[1] for w, p in zip(weights, points, strict=True)])
