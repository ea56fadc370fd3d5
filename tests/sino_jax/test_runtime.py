"""Settings that entry points make: the allocator by one re-execution, the compilation cache."""

import os
import subprocess
import sys
import textwrap

import pytest

from sino_jax import runtime
from sino_jax.data.prefetch import prefetch
from tests.training_runs import ROOT

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc only")
PROGRAM = textwrap.dedent(
    """
    import os, sys
    from sino_jax import runtime
    assert "jax" not in sys.modules
    runtime.use_tuned_allocator()
    print(os.environ.get("MALLOC_ARENA_MAX"), os.environ.get("MALLOC_TOP_PAD_"), sys.argv[1:])
    """
)


def run_program(tmp_path, **variables):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    clean = {k: v for k, v in os.environ.items() if k not in (*runtime.ALLOCATOR, "JAX_PLATFORMS")}
    clean.pop(runtime.ALLOCATOR_SWITCH, None)
    return subprocess.run(
        [sys.executable, os.fspath(program), "--steps=3"],
        env={**clean, "JAX_PLATFORMS": "cpu", "PYTHONPATH": os.fspath(ROOT), **variables},
        capture_output=True,
        text=True,
        check=True,
    )


@LINUX
def test_the_program_starts_again_once_with_its_arguments_and_says_so(tmp_path):
    result = run_program(tmp_path, MALLOC_TOP_PAD_="4096")
    assert result.stdout == "1 4096 ['--steps=3']\n"  # the user's own setting is kept
    assert result.stderr.count("restarting with a tuned memory allocator") == 1


@LINUX
def test_the_allocator_is_left_alone_on_request(tmp_path):
    result = run_program(tmp_path, **{runtime.ALLOCATOR_SWITCH: "0"})
    assert result.stdout == "None None ['--steps=3']\n"
    assert result.stderr == ""


def test_accelerators_keep_their_allocator():
    assert runtime.tuned_environment({"JAX_PLATFORMS": "cuda"}) is None


def printed(program, **variables):
    """What a program prints in a process of its own, on the CPU."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": os.fspath(ROOT)}
    environment.pop(runtime.CACHE_SWITCH, None)
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**environment, **variables},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()


def test_a_second_start_reads_compiled_programs(tmp_path):
    program = """
        import jax, jax.numpy as jnp
        from sino_jax import runtime
        print(runtime.use_compilation_cache())
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        events = []
        jax.monitoring.register_event_listener(lambda name, **_: events.append(name))
        jax.jit(lambda x: jnp.sin(x) @ x)(jnp.ones((8, 8))).block_until_ready()
        print(sum(name.endswith("cache_hits") for name in events) > 0)
        """
    outputs = [printed(program, XDG_CACHE_HOME=os.fspath(tmp_path)) for _ in range(2)]
    assert outputs == [[f"{tmp_path}/sino_jax/compiled", hit] for hit in ("False", "True")]


def test_a_function_of_a_placed_batch_is_computed_within_its_call():
    # NumPy arrays in the place of the batch, or the default dispatch, give False.
    program = """
        import jax, numpy as np
        from sino_jax import runtime
        from sino_jax.train import parallel
        runtime.use_synchronous_dispatch()
        batch = parallel.split(np.eye(1000, dtype=np.float32), parallel.data_mesh())
        powers = jax.jit(lambda x: jax.lax.fori_loop(0, 10, lambda _, y: y @ x, x))
        print(powers(batch).is_ready())
        """
    assert printed(program) == ["True"]


def test_the_cache_can_be_turned_off(monkeypatch):
    monkeypatch.setenv(runtime.CACHE_SWITCH, "0")
    assert runtime.use_compilation_cache() is None


def test_prefetching_keeps_the_order_and_raises_where_the_item_is_due():
    loaded = []

    def load(step):
        loaded.append(step)
        if step == 5:
            raise OSError("no such batch")
        return 10 * step

    stream = prefetch(load, range(2, 8), depth=2)
    assert [next(stream) for _ in range(3)] == [(2, 20), (3, 30), (4, 40)]
    with pytest.raises(OSError, match="no such batch"):
        next(stream)
    assert loaded[:4] == [2, 3, 4, 5]
    with pytest.raises(ValueError, match="depth must be at least 1"):
        next(prefetch(load, range(3), depth=0))


def test_a_cache_that_cannot_be_written_is_done_without_and_said_once(
    tmp_path, capsys, monkeypatch
):
    import jax

    before = jax.config.jax_compilation_cache_dir
    (tmp_path / "file").write_text("")
    assert runtime.use_compilation_cache(tmp_path / "file" / "cache") is None
    assert capsys.readouterr().err.count("compiled programs are not kept") == 1
    assert jax.config.jax_compilation_cache_dir == before
    monkeypatch.setenv("XDG_CACHE_HOME", os.fspath(tmp_path / "file"))
    monkeypatch.delenv(runtime.CACHE_SWITCH, raising=False)
    assert runtime.use_compilation_cache() is None
    assert "cannot be written" in capsys.readouterr().err


def test_a_closed_stderr_is_not_taken_by_the_next_file(tmp_path):
    program = f"""
import os
os.close(2)
from sino_jax import runtime
runtime.reserve_standard_streams()
runtime.say("nobody reads this")
file = open({os.fspath(tmp_path / "metrics")!r}, "w")
os.write(2, b"a library complains")
print(file.fileno())
"""
    (number,) = printed(program)
    assert int(number) > 2
    assert (tmp_path / "metrics").read_text() == ""


@pytest.mark.parametrize("platforms", ["cuda", "gpu,rocm", "tpu"])
def test_an_accelerator_that_jax_cannot_use_is_named(platforms, monkeypatch):
    monkeypatch.setattr(runtime, "_has_accelerator_plugin", lambda: False)
    with pytest.raises(SystemExit, match=f"JAX_PLATFORMS={platforms} asks for an accelerator"):
        runtime.check_platforms({"JAX_PLATFORMS": platforms})
    for fine in (
        {},
        {"JAX_PLATFORMS": ""},
        {"JAX_PLATFORMS": "cpu"},
        {"JAX_PLATFORMS": "cuda,cpu"},
    ):
        runtime.check_platforms(fine)
    monkeypatch.setattr(runtime, "_has_accelerator_plugin", lambda: True)
    runtime.check_platforms({"JAX_PLATFORMS": platforms})


@pytest.mark.parametrize("command", ["run --config=x", "generate --config=darcy:nope"])
def test_commands_work_in_the_c_locale(command):
    """Config files and messages hold letters that ASCII lacks."""
    environment = {
        **os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0",
        "SINO_JAX_TUNED_ALLOCATOR": "0",
    }  # fmt: skip
    run = subprocess.run(
        [sys.executable, "-m", "sino_jax", *command.split()],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].startswith("error: "), run.stderr
    assert "codec" not in run.stderr


def test_what_a_terminal_cannot_print_is_escaped():
    code = "from sino_jax import runtime; runtime.print_what_can_be_printed(); print('\\u03bb = 1')"
    run = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert run.stdout == "\\u03bb = 1\n"
