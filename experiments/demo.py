"""A real small training, from seed to table and figure, within minutes on two cores.

    make demo        (python -m experiments.demo)

Makes Darcy problems at five scales, trains an FNO at scale 4 with and without scale-consistency,
and compares the errors at all scales. Stopped and started again, it goes on; finished, it only
prints.
"""

import pathlib
import time

from experiments import darcy, figures, runner, tables
from experiments.configs import darcy as configs
from sino_jax import runtime

ROOT = pathlib.Path("demo")
ROWS = ("demo,consistency=none", "demo,consistency=sub+super")


def main() -> None:
    start = time.monotonic()
    data, runs = ROOT / "data", ROOT / "runs"
    chosen = [configs.get_config(text) for text in ROWS]
    results = [runner.run(darcy.EXPERIMENT, config, data=data, runs=runs) for config in chosen]
    print("\nRelative L2 error in percent; one seed, trained at scale 4 only:\n")
    print(tables.markdown(results, tables.PAPER["darcy"][0]))
    baseline, improved = (result["row"] for result in results)
    print(f"{improved} is below {baseline} by")
    for scale, percent in tables.reduction(results, baseline=baseline, improved=improved).items():
        print(f"  {percent:5.1f} % at scale {scale:g}")
    improved_run = runner.directory(chosen[1], runs)
    paths = [
        figures.error_against_scale(results, ROOT / "error_against_scale.png", trained=(4,)),
        figures.predictions(improved_run, ROOT / "predictions.png"),
    ]
    print("figures: " + ", ".join(map(str, paths)))
    print(f"{time.monotonic() - start:.0f} s in all")


if __name__ == "__main__":
    runtime.prepare()
    main()
