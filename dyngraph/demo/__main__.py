"""The demo: a model learns from real data.

    python -m dyngraph.demo [--model lstm|gpt|cnn] [--mode eager|compiled|whole|jax]
                            [--steps 1500] [--save FILE] [--resume FILE]

The modes: an ordinary backward, a compiled one, steps that are compiled as a whole, `jax.grad`.

It ends with a table in which all modes make the same steps: their loss and time, and how far their
gradients are from those of `jax.grad` of the same function written in jnp.
"""

from __future__ import annotations

import argparse
import time

import jax
import numpy as np

import dyngraph as dg

try:
    from tqdm import tqdm

    from dyngraph.demo.digits import Digits
    from dyngraph.demo.first_names import FirstNames
    from dyngraph.demo.help_texts import HelpTexts
    from dyngraph.demo.problem import Problem
    from dyngraph.demo.training import (
        EAGER,
        JAX,
        MODES,
        WHOLE,
        Session,
        disagreement,
        load_session,
        make_trainer,
        measure,
        save_session,
    )
except ImportError as error:
    raise SystemExit(
        f"the demo needs {error.name}, which is not installed: run `make demo`, or "
        "`pip install 'dyngraph[demo]'`"
    ) from None

PROBLEMS: dict[str, tuple[type[Problem], int]] = {
    "lstm": (FirstNames, 1500),
    "gpt": (HelpTexts, 300),
    "cnn": (Digits, 600),
}
"""What each model learns, and in how many steps."""
ROUNDING = 1e-4


def read_options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m dyngraph.demo", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--model", choices=PROBLEMS, default="lstm")
    parser.add_argument("--mode", choices=MODES, default=EAGER, help="how the model is trained")
    parser.add_argument("--steps", type=int, help="how many training steps in all")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--hidden", type=int, help="the width of the model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compare", type=int, default=60, help="steps of each mode at the end")
    parser.add_argument("--save", metavar="FILE", help="where the run is kept, now and then")
    parser.add_argument("--resume", metavar="FILE", help="a run to go on with")
    options = parser.parse_args(arguments)
    if options.steps is None:
        options.steps = PROBLEMS[options.model][1]
    return options


def make_problem(options: argparse.Namespace) -> Problem:
    """The problem with a new model, which the seed decides."""
    dg.manual_seed(options.seed)
    sizes = {"batch": options.batch, "hidden": options.hidden}
    given = {name: size for name, size in sizes.items() if size is not None}
    return PROBLEMS[options.model][0](**given, seed=options.seed)  # type: ignore[call-arg]


def train(options: argparse.Namespace) -> None:
    """Trains the model, from its beginning or from a file, and shows what it has learned."""
    problem = make_problem(options)
    session = Session(
        make_trainer(problem, options.mode),
        np.random.default_rng(options.seed),
        dg.manual_seed(options.seed),
        0,
    )
    if options.resume:
        session = load_session(options.resume, session)
        print(f"going on from step {session.done} of {options.resume}")
    trainer, before = session.trainer, problem.validation_loss()
    print(f"validation loss before: {before:.3f} {problem.unit}")
    report_every = max(1, options.steps // 5)
    start = time.perf_counter()
    with tqdm(range(session.done, options.steps), unit="step") as steps:
        for step in steps:
            trainer.step(problem.batch(session.draws))
            if (step + 1) % report_every == 0 or step + 1 == options.steps:
                trainer.put_into_model()
                steps.write(f"step {step + 1:5d}: validation loss {problem.validation_loss():.3f}")
                if options.save:
                    save_session(options.save, session._replace(done=step + 1))
    speed = (options.steps - session.done) / (time.perf_counter() - start)
    print(f"validation loss after:  {problem.validation_loss():.3f} {problem.unit}, ", end="")
    print(f"{speed:.1f} training steps a second\n")
    print(problem.show(session.generator))


def compare(options: argparse.Namespace) -> float:
    """Prints what the same steps come to in each mode; the greatest disagreement of gradients."""
    print(f"\nthe first {options.compare} steps in each mode, from the same parameters:")
    print(f"{'mode':10}{'loss':>9}{'first step':>13}{'a step':>12}{'all':>9}   gradients differ by")
    differences = []
    for mode in MODES:
        problem = make_problem(options)
        if mode == WHOLE != options.mode and problem.lengths_vary:
            print(f"{mode:10}left out: it compiles for each length of names, as {JAX} does")
            continue
        draws = np.random.default_rng(options.seed)
        batches = [problem.batch(draws) for _ in range(options.compare)]
        figures = measure(make_trainer(problem, mode), batches)
        difference = "-"
        if mode != JAX:
            differences.append(disagreement(problem, batches[0], mode))
            difference = f"{differences[-1]:.1e} of the greatest"
        print(
            f"{mode:10}{figures.loss:9.4f}{figures.first:11.2f} s{1000 * figures.median:9.1f} ms"
            f"{figures.all:7.1f} s   {difference}"
        )
    return max(differences)


def main(arguments: list[str] | None = None) -> None:
    """Trains, shows what was learned, and ends with a table."""
    options = read_options(arguments)
    print(f"{PROBLEMS[options.model][0].title}, mode: {options.mode}")
    print(f"running on {jax.devices()[0].device_kind}, jax {jax.__version__}")
    train(options)
    if options.compare and compare(options) > ROUNDING:
        raise SystemExit("the gradients differ from jax.grad's by more than rounding")


if __name__ == "__main__":
    main()
