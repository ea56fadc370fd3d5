"""Cases of the solvers: dtypes, shapes, numbers out of range, NaN in data that is read."""

import pathlib

import jax.numpy as jnp
import numpy as np
from case import NAN, Case, use

ONES = jnp.ones((5, 5))
WAVES = jnp.ones((5, 5), jnp.complex64)
SINE = jnp.sin(2 * jnp.pi * jnp.linspace(0, 1, 16, endpoint=False))
VORTICES = SINE[:, None] * SINE[None, :]


def with_nan(field, index):
    return field.at[index].set(NAN)


def cases(place: pathlib.Path) -> list[Case]:
    del place
    burgers, darcy = use("solvers.burgers"), use("solvers.darcy")
    helmholtz, flow = use("solvers.helmholtz"), use("solvers.navier_stokes")
    stepping = use("solvers.time_stepping")
    ring = jnp.arange(25.0).reshape(5, 5)

    def equal_inside():
        inside = ring.at[1:-1, 1:-1].set(NAN)
        return bool((darcy.solve(ONES, inside) == darcy.solve(ONES, ring)).all())

    def table(solver, **calls):
        return [
            Case("solvers", f"{solver}, {what.replace('_', ' ')}", call, says)
            for what, (call, says) in calls.items()
        ]

    return [
        *table(
            "burgers",
            integer_u0=(lambda: burgers.solve(jnp.arange(8), 0.1, [1.0]), "u0 .* got int32"),
            u0_of_two_axes=(lambda: burgers.solve(VORTICES, 0.1, [1.0]), "u0 .* 1 axes, got"),
            u0_in_words=(lambda: burgers.solve("sine", 0.1, [1.0]), "u0 must be an array"),
            integer_u0_in_simulate=(
                lambda: burgers.simulate(jnp.arange(8), 0.1, [1.0]), "u0 .* got int32"),
            infinite_nu=(lambda: burgers.solve(SINE, jnp.inf, [1.0]), "nu .* got inf"),
            nu_of_two=(lambda: burgers.solve(SINE, np.ones(2), [1.0]), "nu must be a positive"),
            nu_of_NaN=(lambda: burgers.solve(SINE, NAN, [1.0]), "nu .* got nan"),
            negative_cfl=(lambda: burgers.solve(SINE, 0.1, [1.0], cfl=-1.0), "cfl .* got -1.0"),
            cfl_of_NaN=(lambda: burgers.solve(SINE, 0.1, [1.0], cfl=NAN), "cfl .* got nan"),
            order_3=(lambda: stepping.check_options([1.0], 3, 1.0), r"order .* \[2, 4\], got 3"),
            times_in_words=(lambda: stepping.check_times(["late"]), "times must be numbers"),
        ),
        *table(
            "navier_stokes",
            integer_vorticity=(
                lambda: flow.solve(jnp.zeros((8, 8), int), 10.0, [1.0]), "vorticity .* got int32"),
            forcing_with_NaN=(
                lambda: flow.solve(VORTICES, 10.0, [1.0], forcing=with_nan(0 * VORTICES, (3, 3))),
                "forcing must be finite, got 1 of 256"),
            forcing_with_a_mean=(
                lambda: flow.solve(VORTICES, 10.0, [1.0], forcing=1 + 0 * VORTICES),
                "forcing must have mean zero .* got mean 1"),
            forcing_of_another_shape=(
                lambda: flow.solve(VORTICES, 10.0, [1.0], forcing=jnp.zeros((8, 8))),
                r"forcing must have the shape \(16, 16\) of vorticity, got \(8, 8\)"),
            infinite_Re=(lambda: flow.solve(VORTICES, np.inf, [1.0]), "reynolds .* got inf"),
            negative_side=(
                lambda: flow.solve(VORTICES, 10.0, [1.0], side=-1.0), "side .* got -1.0"),
        ),
        *table(
            "darcy",
            integer_coefficient=(
                lambda: darcy.solve(jnp.ones((5, 5), int), ONES), "coefficient .* got int32"),
            integer_boundary=(
                lambda: darcy.solve(ONES, jnp.ones((5, 5), int)), "boundary .* got int32"),
            NaN_on_the_ring=(
                lambda: darcy.solve(ONES, with_nan(ONES, (0, 2))),
                "boundary must be finite on its outer ring, got 1 of 16"),
            extent_of_one_side=(lambda: darcy.solve(ONES, ONES, extent=(1.0,)), "extent .* two"),
            extent_that_is_a_number=(
                lambda: darcy.solve(ONES, ONES, extent=2.0), "extent .* got 2.0"),
            negative_extent=(
                lambda: darcy.solve(ONES, ONES, extent=(1.0, -1.0)), "extent .* got -1.0"),
            extent_of_NaN=(lambda: darcy.solve(ONES, ONES, extent=(NAN, 1.0)), "extent .* got nan"),
        ),
        *table(
            "helmholtz",
            no_waves_and_no_boundary_values=(
                lambda: helmholtz.solve(ONES, 0.0, impedance=ONES),
                "k must be a positive, finite number, got 0.0"),
            negative_k=(
                lambda: helmholtz.solve(ONES, -1.0, dirichlet=WAVES), "k .* negative, got -1.0"),
            k_of_NaN=(lambda: helmholtz.solve(ONES, NAN, impedance=ONES), "k .* got nan"),
            beta_of_NaN=(
                lambda: helmholtz.solve(ONES, 1.0, impedance=ONES, beta=NAN), "beta .* got nan"),
            NaN_in_Dirichlet_data=(
                lambda: helmholtz.solve(ONES, 1.0, dirichlet=with_nan(WAVES, (0, 0))),
                "dirichlet must be finite on its outer ring, got 1 of 16"),
            NaN_in_the_forcing=(
                lambda: helmholtz.solve(
                    ONES, 1.0, dirichlet=WAVES, forcing=with_nan(ONES, (2, 2))),
                "forcing must be finite, got 1 of 25"),
            NaN_in_impedance_data=(
                lambda: helmholtz.solve(ONES, 1.0, impedance=with_nan(ONES, (0, 0))),
                "impedance must be finite on its outer ring"),
            integer_impedance=(
                lambda: helmholtz.solve(ONES, 1.0, impedance=jnp.ones((5, 5), int)),
                "impedance .* got int32"),
        ),
        Case("solvers", "darcy, NaN inside of boundary, which is never read", equal_inside,
             right=lambda same: same is True),
    ]  # fmt: skip
