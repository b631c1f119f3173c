"""Whole steps: see `compile`."""

from dyngraph.steps.program import StepProgram
from dyngraph.steps.step import CompiledStep, compile

__all__ = ["CompiledStep", "StepProgram", "compile"]
