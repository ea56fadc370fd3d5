"""One config file for each experiment: ``get_config("preset,field=value")``.

Fields that every experiment has (an experiment's file states its values and adds its own):

    equation       a name of `sino_jax.equations`; the name of the experiment, too
    preset         tiny (seconds, for tests), demo, small (minutes on two cores), or paper
    data           config of `solvers.generate`
    seed           of weights, batches and crops; the data has its own seed in `solvers.configs`
    model          a name of `sino_jax.models`
    consistency    none, sub, super or sub+super: which scale-consistency losses are added
    symmetries     none, rotation, reflection or rotation+reflection
    base           base solution that the model corrects, see `sino_jax.base`
    epochs, batch_size, learning_rate
    sub_sizes      points a side of the sub-domains
    super_rates    how much larger super-domains are
"""
