"""``python -m sino_jax COMMAND ...`` is the command ``sino-jax``."""

from sino_jax import cli

cli.main()
