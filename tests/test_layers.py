"""Files are layers: a file imports only from what stands before it in the reading order.

An import inside a function counts like any other; one under `if TYPE_CHECKING:` is free, since it
never runs.
"""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

pytestmark = pytest.mark.smoke

PACKAGE = Path(__file__).parent.parent / "dyngraph"

# The reading order, lowest first, one layer a line. An entry is a file, or a folder with all of its
# files that have no entry of their own. An import may point to an entry further left or further up;
# files of one entry may import from each other as long as they make no cycle. `dyngraph` is the
# package root, so that only the demo may import from it.
READING_ORDER = """
    user_code errors configuration tracing modes pending sequence placement pure dtypes devices
    storage donation determinism viewing kernels precision mapped_plan printing tangents batches
    graph.hooks graph.node graph.mutation graph.packing graph.anomaly graph.saved
    graph.calling graph.accumulate graph.entry graph.passing graph.engine graph
    described ways_out tensor random
    cast_policies autocasting
    operator_node dispatch_source forward observed dispatch values lifting
    views writing
    ops.out ops.operator ops.arguments ops.rules ops.host_values
    ops.arithmetic ops.powers ops.trigonometry ops.special ops.rounding ops.complexes
    ops.choosing ops.comparison ops.activation ops.piecewise_linear
    ops.reduction ops.extremes ops.quantiles ops.moments ops.norms ops.scans ops.softmaxes
    ops.shape ops.permutation ops.repetition ops.joining ops.parts ops.diagonals ops.padding
    ops.where_safe ops.basic_indexing ops.indexing ops.gathering ops.scattering ops.slices ops.masks
    ops.sorting ops.searching ops.histograms
    ops.products ops.affine ops.contractions ops.grouped ops.embeddings ops.dropouts
    ops.normalization ops.channel_normalization ops.local_normalization ops.attention
    ops.losses ops.class_losses
    ops.placing ops.differences ops.distances ops.copies ops.gamma_functions
    ops.cephes ops.bessel_functions ops.orthogonal_polynomials ops.matrices
    ops.triangular ops.factorizations ops.indefinite ops.decompositions ops.fourier
    ops.convolution ops.pooling
    ops.max_pooling ops.resampling ops.patches
    ops.margin_losses ops.sequence_losses ops.cells ops.masked_reductions
    ops.masked_moments
    ops.literals ops.conversion ops.factory_arguments ops.from_data ops.interchange
    ops.filled ops.ranges ops.windows ops.random ops.distributions ops.memory_formats ops.memory
    ops.assignment ops.in_place ops.random_in_place
    ops.random_slopes ops.dropout_forms ops.channel_dropouts ops.gumbel
    ops.fractional_pooling ops.layouts
    ops.segments ops.packing ops.recurrence ops.recurrent
    ops.low_rank ops.native_losses ops.native_layers ops
    typed_tensors backward methods
    numpy linalg fft special masked signal autograd amp
    compiled.fusion compiled.report compiled.program compiled.pieces compiled.compilation
    compiled.difference compiled.schedule compiled.traced compiled.segment compiled.recording
    compiled.walk compiled.joined compiled.backward compiled.toggle compiled.deferral
    compiled.overview compiled
    library func utils
    nn
    optim.need_optax optim.optimizer optim.checks optim.options optim.transforms optim.fields
    optim.update optim.cohorts optim.transformed optim.adam optim.descent optim.accumulated
    optim.line_search optim.lbfgs optim.wrapped optim.lr_scheduler.scheduler
    optim.lr_scheduler.factors optim.lr_scheduler.cycles optim.lr_scheduler.combined
    optim.lr_scheduler optim.swa_utils optim saving
    interop.leaves interop.from_jax interop.to_jax interop
    steps.reached steps.sources steps.watch steps.arguments steps.effects steps.conditions
    steps.trace steps.recorded steps.program steps.step steps
    sharding viz
    comparison.agreement comparison.listing comparison.rounds comparison.sizes
    comparison.arguments comparison.ways comparison.page comparison.report comparison.compare
    comparison
    generated dyngraph
    demo.problem demo.first_names demo.help_texts demo.digits demo.training demo.__main__ demo
    doctor __main__
""".split()

# The one file that may use JAX's interfaces for those who extend it.
TRACING = "tracing"

FILES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
FILES["dyngraph"] = FILES.pop("__init__")
every_file = pytest.mark.parametrize("file", FILES)


def parse(file: str) -> ast.Module:
    return ast.parse(FILES[file].read_text(encoding="utf-8"), FILES[file])


def place(file: str) -> int:
    """Where the file stands in the reading order: the place of its longest entry."""
    parts = file.split(".")
    for length in range(len(parts), 0, -1):
        entry = ".".join(parts[:length])
        if entry in READING_ORDER:
            return READING_ORDER.index(entry)
    raise LookupError(f"{file} has no place in READING_ORDER: add it where a reader needs it first")


def is_type_checking(test: ast.expr) -> bool:
    return ast.unparse(test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def running_imports(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Every import statement below `tree` that can run, in functions and branches too."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and is_type_checking(node.test):
            pending.extend(node.orelse)
        else:
            pending.extend(ast.iter_child_nodes(node))


def imported_files(file: str, tree: ast.AST, *, is_folder: bool = False) -> dict[str, int]:
    """The files of dyngraph that `file` imports, each with the line of an import of it.

    `is_folder`: whether the file is the `__init__.py` of a folder, for relative imports.
    """
    found: dict[str, int] = {}
    package = ["dyngraph", *file.split(".")] if file != "dyngraph" else ["dyngraph"]
    if not is_folder:
        package.pop()
    for node in running_imports(tree):
        if isinstance(node, ast.Import):
            targets = [alias.name.split(".") for alias in node.names]
        else:
            base = package[: len(package) - node.level + 1] if node.level else []
            module = base + (node.module.split(".") if node.module else [])
            targets = [[*module, alias.name] for alias in node.names]
        for target in targets:
            if target[0] == "dyngraph":
                found.setdefault(file_of(target, node), node.lineno)
    return found


def file_of(target: list[str], node: ast.Import | ast.ImportFrom) -> str:
    """The file that `import dyngraph.a.b` or `from dyngraph.a import b` reads, `target` being a.b.

    `from dyngraph import a` reads the root, unless `a` is a file.
    """
    if len(target) == 1 or (
        isinstance(node, ast.ImportFrom) and target[1] not in FILES and len(target) == 2
    ):
        return "dyngraph"
    name = ".".join(target[1:])
    return name if name in FILES or isinstance(node, ast.Import) else name.rpartition(".")[0]


def upward_imports(file: str, tree: ast.AST, *, is_folder: bool = False) -> list[str]:
    """The imports of `file` that point up the reading order, as `file:line imports other`."""
    imports = imported_files(file, tree, is_folder=is_folder)
    return [
        f"{file}:{line} imports {other}"
        for other, line in sorted(imports.items(), key=lambda item: item[1])
        if place(other) > place(file)
    ]


def jax_names(tree: ast.AST) -> set[str]:
    """Every dotted name below `jax` that is imported or spelled out, for the type checker too."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            names.add(ast.unparse(node))
    return {name for name in names if name.startswith("jax.")}


def is_folder(file: str) -> bool:
    return FILES[file].name == "__init__.py"


@every_file
def test_file_has_a_place_in_the_reading_order(file: str) -> None:
    place(file)


@every_file
def test_file_imports_nothing_above_it(file: str) -> None:
    assert upward_imports(file, parse(file), is_folder=is_folder(file)) == []


def test_files_import_each_other_without_a_cycle() -> None:
    graph = {file: imported_files(file, parse(file), is_folder=is_folder(file)) for file in FILES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"files import each other in a cycle: {' <- '.join(error.args[1])}")


@every_file
def test_file_uses_no_private_module_of_jax(file: str) -> None:
    assert {name for name in jax_names(parse(file)) if "_src" in name.split(".")} == set()


@every_file
def test_only_the_tracing_file_uses_jax_extension_interfaces(file: str) -> None:
    modules = {name.split(".")[1] for name in jax_names(parse(file))}
    assert modules.isdisjoint({"extend", "interpreters"}) or file == TRACING


# What the walk itself finds, on code written here.


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("errors", "from dyngraph.modes import is_grad_enabled"),
        ("graph.node", "from dyngraph.tensor import Tensor"),
        ("graph.node", "from ..tensor import Tensor"),
        ("graph.node", "import dyngraph.tensor"),
        ("graph.node", "def visit():\n    from dyngraph.tensor import Tensor"),
        ("graph.node", "if TYPE_CHECKING: pass\nelse: import dyngraph.tensor"),
        ("storage", "from dyngraph.graph import engine"),
        ("nn.linear", "import dyngraph"),
        ("nn.linear", "import dyngraph as dg"),
        ("nn.linear", "from dyngraph import Tensor"),
        ("nn.linear", "from dyngraph import sharding"),
        ("tensor", "from . import methods"),
    ],
)
def test_upward_import_is_found(file: str, code: str) -> None:
    assert len(upward_imports(file, ast.parse(code))) == 1


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("modes", "from dyngraph.errors import GraphError"),
        ("graph.engine", "from .node import Node"),
        ("tensor", "from dyngraph.graph.node import Edge, Node"),
        ("graph.node", "if TYPE_CHECKING:\n    from dyngraph.tensor import Tensor"),
        ("graph.node", "if typing.TYPE_CHECKING:\n    from dyngraph import Tensor"),
        ("numpy", "import numpy\nfrom jax import numpy as jnp"),
        ("demo", "import dyngraph as dg"),
    ],
)
def test_downward_import_is_allowed(file: str, code: str) -> None:
    assert upward_imports(file, ast.parse(code)) == []


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("import jax.extend.core", "jax.extend.core"),
        ("from jax import extend", "jax.extend"),
        ("def trace(f):\n    return jax.extend.core.jaxpr_as_fun(f)", "jax.extend.core"),
        ("from jax.interpreters import partial_eval", "jax.interpreters.partial_eval"),
    ],
)
def test_use_of_a_jax_module_is_found(code: str, name: str) -> None:
    assert name in jax_names(ast.parse(code))
