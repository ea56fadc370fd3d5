"""The training step of every model is a program for other platforms, too, checked without them."""

import jax
import jax.numpy as jnp
import optax
import pytest
from jax import export

from sino_jax import loss, models
from sino_jax.nn import backend
from sino_jax.train import parallel
from sino_jax.train.step import Control, init_state, make_step
from sino_jax.types import Instance
from tests.sino_jax.models.test_models import NAMES, SMALL

GRID, BATCH = (17, 17), 2
PLATFORMS = ("cuda", "tpu")


@pytest.mark.parametrize("name", NAMES)
def test_training_step_lowers_for_other_platforms(name, monkeypatch):
    monkeypatch.setattr(backend, "forms_for_cpu", lambda: False)
    model = models.build(
        {"name": name, "out_channels": 1, "boundary_channels": 4, **SMALL[name], "centring": "node"}
    )
    inputs = jax.ShapeDtypeStruct((BATCH, *GRID, 5), jnp.float32)
    scale = jax.ShapeDtypeStruct((BATCH,), jnp.float32)
    optimizer = optax.adam(1e-3)

    def begin():
        params = model.init(jax.random.key(0), jnp.zeros(inputs.shape), jnp.ones(scale.shape))
        return init_state(params, optimizer, jax.random.key(1), averaged=False)

    def loss_fn(params, batch, key, progress):
        return loss.training_loss(
            model.apply,
            params,
            batch,
            equation="darcy",
            key=key,
            progress=progress,
            sub_sizes=(9,),
        )

    field = jax.ShapeDtypeStruct((BATCH, *GRID, 1), jnp.float32)
    batch = (Instance(field, None, scale, field), scale)
    one = jax.ShapeDtypeStruct((1,), jnp.int32)
    step = make_step(loss_fn, optimizer, parallel.data_mesh(), total_steps=10)
    exported = export.export(step, platforms=PLATFORMS)(
        jax.eval_shape(begin), batch, Control(one, one)
    )
    assert exported.platforms == PLATFORMS
    assert "stablehlo.dot_general" in exported.mlir_module()
