"""Functions that a library jits, and whose arguments are its modules, in commands and reports."""

import dataclasses

import pytest

import hlofront.numpy as jnp
from hlofront import fits
from hlofront.cli import main
from hlofront.inspect import find_nan
from hlofront.inspect.target import load_function

# As in equinox and flax: modules have leaves other than arrays, `lower` returns a stage of the
# library, with that of hlofront as `lowered`, and a call converts arguments and results.
MODEL = """
import dataclasses
import hlofront as jax
import hlofront.numpy as jnp

@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Module:
    weight: object
    activation: object

@dataclasses.dataclass
class Stage:
    lowered: object

class filter_jit:
    def __init__(self, function):
        self.of_arrays = jax.jit(
            lambda weight, activation, x: function(Module(weight, activation), x),
            static_argnums=1,
        )
    def __call__(self, module, x):
        return self.of_arrays(module.weight, module.activation, x)
    def lower(self, module, x):
        return Stage(self.of_arrays.lower(module.weight, module.activation, x))

@filter_jit
def step(module, x):
    return module.activation(x @ module.weight)

example_args = (Module(jnp.ones((4, 2)), jnp.tanh), jnp.ones((3, 4)))
"""


@pytest.fixture
def step(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    return f"{tmp_path / 'model.py'}:step"


@pytest.mark.parametrize(
    "command, wanted",
    [
        (["show", "--stage", "jaxpr", "--stage", "stablehlo"], "stablehlo.tanh"),
        (["cost"], "argument weight"),
        (["profile", "--runs", "1"], "in operations"),
    ],
)
def test_commands_show_the_program_of_the_arrays(step, capsys, command, wanted):
    code = main.main([command[0], step, *command[1:]])
    out, err = capsys.readouterr()
    assert code == 0 and wanted in out, err


def test_find_nan_and_fits_take_them(step):
    function, module = load_function(step)
    params, x = module.example_args
    assert fits(function, params, x).argument_bytes == 80
    assert not find_nan(function)(params, x)
    report = find_nan(function)(dataclasses.replace(params, activation=jnp.log), -x)
    assert "log(-4.0) = nan" in str(report)


def test_a_bundle_of_modules_is_refused(step, capsys, tmp_path):
    assert main.main(["bundle", step, "-o", str(tmp_path / "step.hlob")]) == 2
    assert "Give a function of arrays" in capsys.readouterr().err
