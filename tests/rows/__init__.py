"""The operator table: one row an operator, one file for each of `dyngraph/ops/`.

Each file draws its samples anew, so that a row more in one changes none of the others.
"""

from __future__ import annotations

import importlib
import pkgutil

from tests.opinfo import OpInfo, restart

ROWS: list[OpInfo] = []
for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
    restart(module)
    ROWS += importlib.import_module(f"{__name__}.{module}").ROWS
