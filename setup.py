"""Package metadata; tool settings are in pyproject.toml, tested versions in constraints.txt."""

import pathlib
import re

from setuptools import find_packages, setup

ROOT = pathlib.Path(__file__).parent
VERSION = re.search(r'__version__ = "(.+?)"', (ROOT / "sino_jax/__init__.py").read_text()).group(1)

EXTRAS = {
    "cuda12": ["jax[cuda12]"],
    "cuda13": ["jax[cuda13]"],
    "viz": ["matplotlib>=3.9"],
    "notebooks": [
        "equinox>=0.11.10",
        "flatbuffers>=24.3",  # jax.export
        "ipykernel>=6.29",
        "matplotlib>=3.9",
        "nbclient>=0.10",
        "nbformat>=5.10",
    ],
    "docs": ["mkdocs-jupyter>=0.25", "mkdocs-material>=9.5", "mkdocstrings[python]>=0.27"],
    "hdf5": ["h5py>=3.11"],  # import and export of PDEBench and The Well files
    "export": ["flatbuffers>=24.3"],  # jax.export writes and reads programs with it
    "tensorboard": ["tensorboardX>=2.6"],
    "wandb": ["wandb>=0.18"],
    "benchmarks": [  # the peers that benchmarks/ measures against
        "exponax>=0.2",
        "neuraloperator>=2.0",
        "pyamg>=5.2",
        "pypardiso>=0.4.6",
        "scipy>=1.13",
        "torch>=2.5",
    ],
}
EXTRAS["dev"] = [
    *EXTRAS["viz"],
    *EXTRAS["hdf5"],
    *EXTRAS["export"],
    *EXTRAS["tensorboard"],
    "beartype>=0.19",  # checks the jaxtyping annotations while the tests run
    "equinox>=0.11.10",  # the documentation shows the losses inside an Equinox pipeline
    "exponax>=0.2",  # an independent solver that the tests compare with
    "hypothesis>=6.100",  # draws the shapes, dtypes and values of the property tests
    "pre-commit>=4.0",
    "pytest>=8.3",
    "pytest-xdist>=3.6",  # tests mostly compile, on one core: two workers halve the time
    "ruff>=0.8",
    "scipy>=1.13",
    "setuptools>=77",  # a test lays the package out as a wheel does
]

# Installed below sino_jax, where nobody's own `solvers` or `experiments` is in their way: see
# sino_jax/programs.py.
PROGRAMS = {
    f"sino_jax._programs.{name}": name.replace(".", "/")
    for name in find_packages(include=["solvers", "solvers.*", "experiments", "experiments.*"])
}

setup(
    name="sino-jax",
    version=VERSION,
    description="Scale-consistent learning for partial differential equations in JAX",
    long_description=(ROOT / "README.md").read_text(),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.11",
    packages=[*find_packages(include=["sino_jax", "sino_jax.*"]), *PROGRAMS],
    package_dir=PROGRAMS,
    # Trained operators; campaigns and the like, beside the code that reads them.
    package_data={
        "sino_jax": ["pretrained/*/*"],
        **{name: ["**/*.txt", "**/*.json", "**/*.md"] for name in PROGRAMS},
    },
    entry_points={"console_scripts": ["sino-jax = sino_jax.cli:main"]},
    install_requires=[
        "jax>=0.10",
        "flax>=0.12",
        "optax>=0.2.5",
        "orbax-checkpoint>=0.11.20",
        "jax-cfd>=0.2.1",
        "numpy>=2.0",
        "ml_collections>=1.0",
        "absl-py>=2.1",
        "jaxtyping>=0.3",
    ],
    extras_require=EXTRAS,
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Intended Audience :: Science/Research",
        "Programming Language :: Python :: 3",
        "Topic :: Scientific/Engineering",
    ],
)
