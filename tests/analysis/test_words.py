"""Numbers and labels in words, case by case."""

import math

import pytest
import xarray as xr

from fmab_jax.analysis import words

EPSILON = {"symbol": "ε", "none": "no noise"}


def coordinate(value, **attrs):
    return xr.DataArray([value], dims="round_budget", name="round_budget", attrs=attrs)


@pytest.mark.parametrize(
    "write, values",
    [
        (
            words.write_short,
            {0: "0", 1e-4: "0.0001", 9.9e-5: "9.900e-05", 0.123456: "0.1235", 5.0: "5"}
            | {12.345: "12.35", 999.94: "999.9", 1000.6: "1,001", -1000.6: "-1,001"}
            | {1e11: "100,000,000,000", 1e12: "1.000e+12"},
        ),
        (
            words.write_count,
            {0: "0", 999: "999", 1000: "1000", 9999: "9999", 10**4: "10⁴", 12345: "12,345"}
            | {20000: "20,000", 10**6: "10⁶", 10**12: "10¹²", 101000: "101,000"},
        ),
        (
            words.write_number,
            {0.5: "0.5", 1000: "1000", 9999: "9999", 1e4: "10⁴", 2e4: "2×10⁴", 12345: "12345"}
            | {1.2e-7: "1.2×10⁻⁷", 1e-15: "10⁻¹⁵", 1234567.0: "1.23457×10⁶", -2e4: "-2×10⁴"},
        ),
        (
            words.write_label,
            {"ring": "ring", 2.0: "2", 10**6: "1000000", 0.12345: "0.12345", 0.5: "0.5"}
            | {0.123456789: "0.123456789", math.inf: "none"},
        ),
        (
            words.write_privacy,
            {0.5: "ε = 0.5", 1e4: "ε = 10⁴", math.inf: "no noise", "none": "no noise"}
            | {0.1234567: "ε = 0.1234567", 0.1 + 0.2: "ε = 0.3"},
        ),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_numbers_case_by_case(write, values):
    """Would catch a digit too few, so that different values look the same, and a unit of 1000."""
    assert {value: write(value) for value in values} == values


@pytest.mark.parametrize(
    "made, value, label, told",
    [
        (coordinate(0.5, **EPSILON), 0.5, "0.5", "ε = 0.5"),
        (coordinate(0.5, **EPSILON), "none", "no noise", "no noise"),
        (coordinate(0.5, **EPSILON), math.inf, "no noise", "no noise"),
        (coordinate(2), 2, "2", "round budget = 2"),
        (coordinate(2), "none", "none", "round budget = none"),
        (coordinate(2), math.inf, "∞", "round budget = ∞"),
        (coordinate("ring", symbol=""), "ring", "ring", "ring"),
        (coordinate(True, symbol="pooled"), True, "True", "pooled = True"),
    ],
)
def test_values_of_a_parameter(made, value, label, told):
    """Would catch a symbol without its value, "no noise" after a symbol, and True taken for 1."""
    assert (words.write_tick(made, value), words.format_value(made, value)) == (label, told)


def test_what_all_share_is_told_once():
    """Would catch a setting that is lost, one that the figure shows itself, or a wrong order."""
    data = xr.Dataset(
        coords={"participation": ((), 0.4, {"symbol": "p"}), "wait": 3},
        attrs={"title": "CDP-MAB", "epsilon": 0.5, "epsilon_message": 25.0, "agents": 50}
        | {"arms": 1, "horizon": 10**6, "root_seed": 7}
        | {"settings": '{"rounds": "R = 3", "weights": "by components"}'},
    )
    sizes = ["M = 50 agents", "K = 1 arm", "T = 10⁶ slots"]
    rest = ["R = 3", "by components", "p = 0.4", "root seed 7"]
    assert words.list_facts(data) == ["CDP-MAB", "ε = 0.5", *sizes, *rest]
    leaks = words.list_facts(data, ["rounds", "agents"], leaks=True)
    assert leaks == ["CDP-MAB", "ε = 0.5 (25 per message)", *sizes[1:], *rest[1:]]
    found = words.list_facts(data, ["epsilon", "participation"])
    assert found == ["CDP-MAB", *sizes, "R = 3", "by components", "root seed 7"]
