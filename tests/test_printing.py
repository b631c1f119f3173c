"""Printing, against strings recorded from PyTorch 2.13.0: the dtype suffixes are PyTorch's too."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from dyngraph import printing


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    """Leaves PyTorch's defaults behind, whatever a test sets."""
    yield
    printing.set_printoptions(profile="default")


# What it shows: (array, suffixes, what PyTorch prints).
PRINTED: dict[str, tuple[np.ndarray, list[str], str]] = {
    "int_scalar": (np.array(7), [], "tensor(7)"),
    "negative_int_scalar": (np.array(-3), [], "tensor(-3)"),
    "bool_scalar": (np.array(True), [], "tensor(True)"),
    "whole_float_scalar": (np.array(2, np.float32), [], "tensor(2.)"),
    "float_scalar": (np.array(3.14159, np.float32), [], "tensor(3.1416)"),
    "large_float_scalar": (np.array(123456.789, np.float32), [], "tensor(123456.7891)"),
    "tiny_float_scalar": (np.array(1e-5, np.float32), [], "tensor(1.0000e-05)"),
    "nan_scalar": (np.array(np.nan, np.float32), [], "tensor(nan)"),
    "minus_inf_scalar": (np.array(-np.inf, np.float32), [], "tensor(-inf)"),
    "minus_zero_scalar": (np.array(-0.0, np.float32), [], "tensor(-0.)"),
    "complex_scalar": (np.array(1 - 2.5j, np.complex64), [], "tensor(1.-2.5000j)"),
    "ints_share_a_width": (np.array([1, -20, 300]), [], "tensor([  1, -20, 300])"),
    "uint8": (
        np.array([0, 255], np.uint8),
        ["dtype=torch.uint8"],
        "tensor([  0, 255], dtype=torch.uint8)",
    ),
    "int64_extremes": (
        np.array([-(2**63), 2**63 - 1]),
        [],
        "tensor([-9223372036854775808,  9223372036854775807])",
    ),
    "bools_share_a_width": (np.array([True, False]), [], "tensor([ True, False])"),
    "bools_all_false": (np.zeros(2, np.bool_), [], "tensor([False, False])"),
    "whole_floats": (np.array([1, -2, 30], np.float32), [], "tensor([ 1., -2., 30.])"),
    "floats": (np.array([0.1, -2.25, 30], np.float32), [], "tensor([ 0.1000, -2.2500, 30.0000])"),
    "all_zero": (np.zeros(3, np.float32), [], "tensor([0., 0., 0.])"),
    "minus_zero_is_not_measured": (
        np.array([-0.0, 0.5], np.float32),
        [],
        "tensor([-0.0000, 0.5000])",
    ),
    "whole_with_nonfinite": (
        np.array([1, np.nan, np.inf, -np.inf], np.float32),
        [],
        "tensor([1., nan, inf, -inf])",
    ),
    "floats_with_nonfinite": (
        np.array([0.5, np.nan, np.inf, -np.inf], np.float32),
        [],
        "tensor([0.5000,    nan,    inf,   -inf])",
    ),
    "only_nonfinite": (np.array([np.nan, np.inf, 0], np.float32), [], "tensor([nan, inf, 0.])"),
    "ratio_of_1000_is_fixed": (
        np.array([0.5, 500], np.float32),
        [],
        "tensor([  0.5000, 500.0000])",
    ),
    "ratio_above_1000_is_scientific": (
        np.array([0.5, 500.5], np.float32),
        [],
        "tensor([5.0000e-01, 5.0050e+02])",
    ),
    "whole_above_1e8_is_scientific": (
        np.array([2e8, 3e8], np.float32),
        [],
        "tensor([2.0000e+08, 3.0000e+08])",
    ),
    "whole_1e8_is_fixed": (
        np.array([1e8, 2e7], np.float32),
        [],
        "tensor([100000000.,  20000000.])",
    ),
    "below_1e_4_is_scientific": (
        np.array([9e-5, 1e-5], np.float32),
        [],
        "tensor([9.0000e-05, 1.0000e-05])",
    ),
    "scientific_with_zero_and_nan": (
        np.array([1e-8, 0, np.nan, -1], np.float32),
        [],
        "tensor([ 1.0000e-08,  0.0000e+00,         nan, -1.0000e+00])",
    ),
    "float64": (
        np.array([1 / 3, 1e300]),
        ["dtype=torch.float64"],
        "tensor([ 3.3333e-01, 1.0000e+300], dtype=torch.float64)",
    ),
    "float64_subnormal": (
        np.array([5e-324, 1e308]),
        ["dtype=torch.float64"],
        "tensor([4.9407e-324, 1.0000e+308], dtype=torch.float64)",
    ),
    "float16": (
        np.array([0.1, 65504], np.float16),
        ["dtype=torch.float16"],
        "tensor([9.9976e-02, 6.5504e+04], dtype=torch.float16)",
    ),
    "bfloat16": (
        np.array([0.1, 1.5, -3], bfloat16),
        ["dtype=torch.bfloat16"],
        "tensor([ 0.1001,  1.5000, -3.0000], dtype=torch.bfloat16)",
    ),
    "bfloat16_whole": (
        np.array([1, 256], bfloat16),
        ["dtype=torch.bfloat16"],
        "tensor([  1., 256.], dtype=torch.bfloat16)",
    ),
    "complex": (
        np.array([1 + 2j, -3.5 - 0.25j], np.complex64),
        [],
        "tensor([ 1.0000+2.0000j, -3.5000-0.2500j])",
    ),
    "complex_whole": (
        np.array([1 + 2j, -3 - 40j], np.complex64),
        [],
        "tensor([ 1.+2.j, -3.-40.j])",
    ),
    "complex_parts_differ_in_style": (
        np.array([1e-6 + 1j, 2 + 0j], np.complex128),
        ["dtype=torch.complex128"],
        "tensor([1.0000e-06+1.j, 2.0000e+00+0.j], dtype=torch.complex128)",
    ),
    "complex_nonfinite": (
        np.array([complex(np.nan, np.inf), complex(1, -np.inf)], np.complex64),
        [],
        "tensor([nan+infj, 1.-infj])",
    ),
    "empty": (np.zeros(0, np.float32), [], "tensor([])"),
    "empty_int": (np.zeros(0, np.int64), ["dtype=torch.int64"], "tensor([], dtype=torch.int64)"),
    "empty_matrix": (np.zeros((0, 3), np.float32), [], "tensor([], size=(0, 3))"),
    "empty_3d_with_grad": (
        np.zeros((2, 0, 3)),
        ["dtype=torch.float64", "requires_grad=True"],
        "tensor([], size=(2, 0, 3), dtype=torch.float64, requires_grad=True)",
    ),
    "matrix": (np.arange(6).reshape(2, 3), [], "tensor([[0, 1, 2],\n        [3, 4, 5]])"),
    "matrix_of_floats": (
        np.array([[0.5, -1], [10, 2]], np.float32),
        ["requires_grad=True"],
        "tensor([[ 0.5000, -1.0000],\n        [10.0000,  2.0000]], requires_grad=True)",
    ),
    "three_axes": (
        np.arange(8.0, dtype=np.float32).reshape(2, 2, 2),
        [],
        "tensor([[[0., 1.],\n         [2., 3.]],\n\n        [[4., 5.],\n         [6., 7.]]])",
    ),
    "four_axes": (
        np.arange(4).reshape(2, 1, 1, 2),
        [],
        "tensor([[[[0, 1]]],\n\n\n        [[[2, 3]]]])",
    ),
    "long_vector_wraps": (
        np.arange(30),
        [],
        (
            "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
            "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])"
        ),
    ),
    "long_complex_vector_wraps": (
        np.arange(8, dtype=np.float32) * np.complex64(1 + 0.5j),
        [],
        (
            "tensor([0.+0.0000j, 1.+0.5000j, 2.+1.0000j, 3.+1.5000j, 4.+2.0000j, 5.+2.5000j,\n"
            "        6.+3.0000j, 7.+3.5000j])"
        ),
    ),
    "long_row_wraps": (
        np.linspace(0, 1, 22, dtype=np.float32).reshape(2, 11),
        [],
        (
            "tensor([[0.0000, 0.0476, 0.0952, 0.1429, 0.1905, 0.2381, 0.2857, 0.3333, 0.3810,\n"
            "         0.4286, 0.4762],\n"
            "        [0.5238, 0.5714, 0.6190, 0.6667, 0.7143, 0.7619, 0.8095, 0.8571, 0.9048,\n"
            "         0.9524, 1.0000]])"
        ),
    ),
    "thousand_and_one_is_summarised": (
        np.arange(1001),
        [],
        "tensor([   0,    1,    2,  ...,  998,  999, 1000])",
    ),
    "matrix_is_summarised": (
        np.arange(1200.0, dtype=np.float32).reshape(40, 30),
        ["grad_fn=<MulBackward0>"],
        (
            "tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 2.7000e+01, 2.8000e+01,\n"
            "         2.9000e+01],\n"
            "        [3.0000e+01, 3.1000e+01, 3.2000e+01,  ..., 5.7000e+01, 5.8000e+01,\n"
            "         5.9000e+01],\n"
            "        [6.0000e+01, 6.1000e+01, 6.2000e+01,  ..., 8.7000e+01, 8.8000e+01,\n"
            "         8.9000e+01],\n"
            "        ...,\n"
            "        [1.1100e+03, 1.1110e+03, 1.1120e+03,  ..., 1.1370e+03, 1.1380e+03,\n"
            "         1.1390e+03],\n"
            "        [1.1400e+03, 1.1410e+03, 1.1420e+03,  ..., 1.1670e+03, 1.1680e+03,\n"
            "         1.1690e+03],\n"
            "        [1.1700e+03, 1.1710e+03, 1.1720e+03,  ..., 1.1970e+03, 1.1980e+03,\n"
            "         1.1990e+03]], grad_fn=<MulBackward0>)"
        ),
    ),
    "only_the_long_axis_is_cut": (
        np.arange(1002).reshape(2, 501),
        [],
        (
            "tensor([[   0,    1,    2,  ...,  498,  499,  500],\n"
            "        [ 501,  502,  503,  ...,  999, 1000, 1001]])"
        ),
    ),
    "three_axes_are_summarised": (
        np.zeros((2, 7, 100), np.bool_),
        [],
        (
            "tensor([[[False, False, False,  ..., False, False, False],\n"
            "         [False, False, False,  ..., False, False, False],\n"
            "         [False, False, False,  ..., False, False, False],\n"
            "         ...,\n"
            "         [False, False, False,  ..., False, False, False],\n"
            "         [False, False, False,  ..., False, False, False],\n"
            "         [False, False, False,  ..., False, False, False]],\n\n"
            "        [[False, False, False,  ..., False, False, False],\n"
            "         [False, False, False,  ..., False, False, False],\n"
            "         [False, False, False,  ..., False, False, False],\n"
            "         ...,\n"
            "         [False, False, False,  ..., False, False, False],\n"
            "         [False, False, False,  ..., False, False, False],\n"
            "         [False, False, False,  ..., False, False, False]]])"
        ),
    ),
    "summary_measures_what_it_shows": (
        np.concatenate([np.ones(500), [1e-9], np.ones(501)]),
        ["dtype=torch.float64"],
        "tensor([1., 1., 1.,  ..., 1., 1., 1.], dtype=torch.float64)",
    ),
    "suffix_fits": (
        np.arange(10.0, dtype=np.float32),
        ["requires_grad=True"],
        "tensor([0., 1., 2., 3., 4., 5., 6., 7., 8., 9.], requires_grad=True)",
    ),
    "suffix_breaks_the_line": (
        np.arange(14.0, dtype=np.float32),
        ["requires_grad=True"],
        (
            "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.],\n"
            "       requires_grad=True)"
        ),
    ),
    "second_suffix_breaks_the_line": (
        np.arange(12.0),
        ["dtype=torch.float64", "requires_grad=True"],
        (
            "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11.],\n"
            "       dtype=torch.float64, requires_grad=True)"
        ),
    ),
    "suffix_counts_from_the_last_line": (
        np.arange(20.0, dtype=np.float32),
        ["grad_fn=<MulBackward0>"],
        (
            "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,\n"
            "        14., 15., 16., 17., 18., 19.], grad_fn=<MulBackward0>)"
        ),
    ),
}

# What it shows: (options, array, what PyTorch prints).
PRINTED_WITH_OPTIONS: dict[str, tuple[dict[str, Any], np.ndarray, str]] = {
    "precision": (
        {"precision": 2},
        np.array([0.123456, 12.5], np.float32),
        "tensor([ 0.12, 12.50])",
    ),
    "precision_zero": (
        {"precision": 0},
        np.array([0.123456, 12.5], np.float32),
        "tensor([ 0, 12])",
    ),
    "precision_of_scientific": (
        {"precision": 1, "sci_mode": True},
        np.array([0.123456, 12.5], np.float32),
        "tensor([1.2e-01, 1.2e+01])",
    ),
    "sci_mode_on_for_whole_floats": (
        {"sci_mode": True},
        np.array([1, 20, 0], np.float32),
        "tensor([1.0000e+00, 2.0000e+01, 0.0000e+00])",
    ),
    "sci_mode_on_without_a_number": (
        {"sci_mode": True},
        np.array([0, np.nan], np.float32),
        "tensor([0., nan])",
    ),
    "sci_mode_off": (
        {"sci_mode": False},
        np.array([1e-5, 1], np.float32),
        "tensor([0.0000, 1.0000])",
    ),
    "threshold": ({"threshold": 6}, np.arange(8), "tensor([0, 1, 2,  ..., 5, 6, 7])"),
    "threshold_and_edgeitems": (
        {"threshold": 3, "edgeitems": 1},
        np.arange(12).reshape(3, 4),
        "tensor([[ 0,  ...,  3],\n        ...,\n        [ 8,  ..., 11]])",
    ),
    "no_edgeitems": (
        {"threshold": 3, "edgeitems": 0},
        np.arange(12).reshape(3, 4),
        "tensor([...], size=(3, 4))",
    ),
    "no_edgeitems_of_a_vector": (
        {"threshold": 3, "edgeitems": 0},
        np.arange(12),
        "tensor([...], size=(12,))",
    ),
    "linewidth": ({"linewidth": 20}, np.arange(8), "tensor([0, 1, 2, 3,\n        4, 5, 6, 7])"),
    "linewidth_below_one_number": ({"linewidth": 1}, np.arange(2), "tensor([0,\n        1])"),
    "profile_short": (
        {"profile": "short"},
        np.linspace(0, 1, 1001, dtype=np.float32),
        "tensor([0.00, 0.00,  ..., 1.00, 1.00])",
    ),
    "profile_with_override": (
        {"profile": "short", "precision": 3},
        np.array([0.123456, 12.5], np.float32),
        "tensor([ 0.123, 12.500])",
    ),
}


@pytest.mark.parametrize("array, suffixes, printed", PRINTED.values(), ids=PRINTED)
def test_prints_what_pytorch_prints(array: np.ndarray, suffixes: list[str], printed: str) -> None:
    assert printing.format_tensor(array, suffixes=suffixes) == printed


@pytest.mark.parametrize(
    "options, array, printed", PRINTED_WITH_OPTIONS.values(), ids=PRINTED_WITH_OPTIONS
)
def test_options_change_what_they_change_in_pytorch(
    options: dict[str, Any], array: np.ndarray, printed: str
) -> None:
    printing.set_printoptions(**options)
    assert printing.format_tensor(array, suffixes=[]) == printed


def test_profile_full_shows_every_number() -> None:
    printing.set_printoptions(profile="full")
    body = printing.format_array(np.arange(2000), indent=7)
    assert [int(word) for word in body.strip("[]").split(",")] == list(range(2000))


def test_indent_moves_continued_lines_and_narrows_them() -> None:
    assert printing.format_array(np.arange(4), indent=70) == "[0, 1, 2,\n" + " " * 71 + "3]"


def test_size_follows_the_device() -> None:
    suffixes = ["device='cuda:0'", "dtype=torch.int64"]
    printed = printing.format_tensor(np.zeros((0, 3), np.int64), suffixes=suffixes)
    assert printed == "tensor([], device='cuda:0', size=(0, 3), dtype=torch.int64)"


def test_every_call_sets_sci_mode_anew() -> None:
    printing.set_printoptions(sci_mode=True)
    printing.set_printoptions(precision=2)
    assert printing.format_array(np.array([0.5]), indent=0) == "[0.50]"


def test_options_not_given_stay() -> None:
    printing.set_printoptions(precision=2)
    printing.set_printoptions(threshold=5)
    assert printing.PrintOptions(precision=2, threshold=5) == printing.PRINT_OPTS


def test_unknown_profile_raises() -> None:
    with pytest.raises(ValueError, match=r"profile 'long'.*Use one of default, short, full"):
        printing.set_printoptions(profile="long")  # pyright: ignore[reportArgumentType]
