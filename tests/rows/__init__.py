"""The operator table: one row an operator, one file for each of `dyngraph/ops/`."""

from __future__ import annotations

import importlib
import pkgutil

from tests.opinfo import OpInfo

ROWS: list[OpInfo] = [
    row
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__))
    for row in importlib.import_module(f"{__name__}.{module}").ROWS
]
