"""``scr_critplugin.tracing``: Valgrind found and checked; a traced program's environment, signals, status.

The program is a real one, Valgrind a script that traces nothing (``fake_valgrind.py``): what is tested is how
it is started.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import scr_critplugin.tracing.valgrind as valgrind_module
from scr_critplugin.errors import TraceError
from scr_critplugin.tracing.launch import Tracing, build_id_of, find_program, prepare, run_traced
from scr_critplugin.tracing.mpi_environment import hints_text, traced_environment
from scr_critplugin.tracing.valgrind import Valgrind, find_valgrind, make_tool_folder, tool_version

HERE = Path(__file__).resolve().parent


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Valgrind:
    """A Valgrind that traces nothing, installed under a prefix of its own, and a tracer for it."""
    prefix = tmp_path / "valgrind"
    for folder in ("bin", "libexec/valgrind", "tracer"):
        (prefix / folder).mkdir(parents=True)
    program = prefix / "bin" / "valgrind"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {HERE / "fake_valgrind.py"} "$@"\n')
    program.chmod(0o755)
    platform = valgrind_module._platform()
    (prefix / "libexec/valgrind" / f"none-{platform}").write_text("")
    (prefix / "libexec/valgrind" / "default.supp").write_text("")
    (prefix / "tracer" / f"scr_crit-{platform}").write_bytes(b"\0valgrind-3.21.1\0")
    monkeypatch.setattr(valgrind_module, "tracer_folder", lambda: prefix / "tracer")
    monkeypatch.setenv("SCR_CRIT_VALGRIND", str(program))
    return find_valgrind(os.environ)


def test_valgrind_is_found_with_its_tools(fake: Valgrind) -> None:
    assert fake.version == "3.19.0"
    assert fake.stock.name == "valgrind"


@pytest.mark.parametrize(
    ("version", "message"),
    [("valgrind-3.18.1", "found Valgrind 3.18.1, expected 3.19"), ("gdb 12", "answers --version by")],
)
def test_another_version_is_refused(
    fake: Valgrind, monkeypatch: pytest.MonkeyPatch, version: str, message: str
) -> None:
    monkeypatch.setenv("FAKE_VERSION", version)
    with pytest.raises(TraceError, match=message):
        find_valgrind(os.environ)


def test_newer_versions_are_taken(fake: Valgrind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VERSION", "valgrind-3.23.0.GIT")
    assert find_valgrind(os.environ).version == "3.23.0"


def test_no_valgrind_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"no valgrind on the PATH.*valgrind-devel"):
        find_valgrind({"PATH": str(tmp_path)})
    with pytest.raises(TraceError, match="'nothing', which is no program"):
        find_valgrind({"PATH": str(tmp_path), "SCR_CRIT_VALGRIND": "nothing"})


def test_valgrind_without_its_tools_says_where_it_looked(fake: Valgrind) -> None:
    shutil.rmtree(fake.stock)
    with pytest.raises(TraceError, match=r"libexec/valgrind.*VALGRIND_LIB"):
        find_valgrind(os.environ)
    own = fake.program.parent.parent / "own"
    own.mkdir()
    (own / f"none-{valgrind_module._platform()}").write_text("")
    assert find_valgrind({**os.environ, "VALGRIND_LIB": str(own)}).stock == own


def test_the_tool_folder_links_to_both_and_is_made_by_many_at_once(fake: Valgrind, tmp_path: Path) -> None:
    threads = [threading.Thread(target=make_tool_folder, args=(fake, tmp_path / "v")) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    platform = valgrind_module._platform()
    assert {path.name for path in (tmp_path / "v").iterdir()} == {
        "default.supp",
        f"none-{platform}",
        f"scr_crit-{platform}",
    }
    assert tool_version(tmp_path / "v") == "3.21.1"


# Programs -------------------------------------------------------------------------------------------------


def test_scripts_and_nothing_are_no_programs(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("#!/bin/sh\n")
    with pytest.raises(TraceError, match="is no program that can be run"):
        find_program(str(script))
    script.chmod(0o755)
    with pytest.raises(TraceError, match="Give the binary"):
        find_program(str(script))
    with pytest.raises(TraceError, match="no such program"):
        find_program("./nothing")
    assert find_program("true").name == "true"


def test_a_static_program_is_refused_and_a_dynamic_one_is_not(tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc: install gcc")
    (tmp_path / "a.c").write_text("int main(void) { return 0; }\n")
    for options, static in (
        ([], False),
        (["-no-pie"], False),
        (["-static", "-nostdlib", "-e", "main"], True),
    ):
        subprocess.run(["gcc", *options, "a.c", "-o", "a.out"], cwd=tmp_path, check=True)
        if static:
            with pytest.raises(TraceError, match="linked statically"):
                find_program(str(tmp_path / "a.out"))
        else:
            assert find_program(str(tmp_path / "a.out")) == tmp_path / "a.out"


def test_a_program_without_build_id_has_its_digest(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: install gcc")
    (tmp_path / "a.c").write_text("int main(void) { return 0; }\n")
    for option, start in (("-Wl,--build-id=none", "sha256:"), ("-Wl,--build-id=0x1234", "1234")):
        subprocess.run([compiler, option, "a.c", "-o", "a.out"], cwd=tmp_path, check=True)
        assert build_id_of(tmp_path / "a.out").startswith(start)


# Environment ----------------------------------------------------------------------------------------------


def test_single_copy_transports_are_off_and_said_where_the_user_wanted_others(tmp_path: Path) -> None:
    given = {"OMPI_MCA_btl_vader_single_copy_mechanism": "cma", "PATH": "/bin", "PSM2_KASSIST_MODE": "none"}
    found, replaced = traced_environment(given, tmp_path / "hints")
    assert found["OMPI_MCA_btl_vader_single_copy_mechanism"] == "emulated"
    assert found["MPIR_CVAR_CH4_CMA_ENABLE"] == "0"
    assert found["ROMIO_HINTS"] == str(tmp_path / "hints")
    assert found["PATH"] == "/bin"
    assert replaced == ["OMPI_MCA_btl_vader_single_copy_mechanism"]


def test_the_transports_of_ucx_are_left_alone(tmp_path: Path) -> None:
    assert "UCX_TLS" not in traced_environment({}, tmp_path)[0]
    assert traced_environment({"UCX_TLS": "rc,cma"}, tmp_path)[0]["UCX_TLS"] == "rc,cma"


@pytest.mark.parametrize(
    ("given", "expected"), [(None, "-x86"), ("-pci", "-pci,-x86"), ("-x86,-pci", "-x86,-pci")]
)
def test_hwloc_is_silent_and_keeps_the_users_components(given: str | None, expected: str) -> None:
    environment = {} if given is None else {"HWLOC_COMPONENTS": given}
    found, replaced = traced_environment(environment, Path("h"))
    assert found["HWLOC_COMPONENTS"] == expected
    assert replaced == []


def test_hints_of_the_user_live_on(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("striping_factor 8\nromio_cb_write enable\n")
    lines = hints_text({"ROMIO_HINTS": str(own)}).splitlines()
    assert lines[0] == "striping_factor 8"
    assert "romio_cb_write disable" in lines
    assert "romio_cb_write enable" not in lines
    assert len(hints_text({"ROMIO_HINTS": str(tmp_path / "gone")}).splitlines()) == 4


def test_the_plugin_only_reads_while_tracing(fake: Valgrind, tmp_path: Path) -> None:
    traced, told = prepare(fake, tmp_path, {"SCR_CRIT_PLUGIN": "1"})
    assert traced["SCR_CRIT_DRYRUN"] == "1"
    assert "SCR_CRIT_DRYRUN" in told[0]
    assert "SCR_CRIT_DRYRUN" not in prepare(fake, tmp_path, {})[0]


# Running --------------------------------------------------------------------------------------------------


def run(fake: Valgrind, tmp_path: Path, *command: str, tracing: Tracing | None = None) -> int:
    environment = {**os.environ, "FAKE_TRACE": "none", "FAKE_LOG": str(tmp_path / "log")}
    return run_traced(fake, tmp_path / "t", command, environment, tracing or Tracing())


def test_options_and_arguments_reach_their_place(fake: Valgrind, tmp_path: Path) -> None:
    assert run(fake, tmp_path, "/bin/echo", "--a", "b c", tracing=Tracing(3, "out*")) == 0
    log = json.loads((tmp_path / "log").read_text())
    assert log["program"] == ["/bin/echo", "--a", "b c"]
    assert {"--tool=scr_crit", f"--trace-out={tmp_path / 't'}", "--until-flat=3", "--dump=out*"} <= set(
        log["options"]
    )


@pytest.mark.parametrize(("script", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)])
def test_the_exit_status_is_the_program_s(fake: Valgrind, tmp_path: Path, script: str, status: int) -> None:
    assert run(fake, tmp_path, "/bin/sh", "-c", script) == status


def test_descriptors_of_the_launcher_stay_open(fake: Valgrind, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    try:
        assert run(fake, tmp_path, "/bin/sh", "-c", f"echo told > /proc/self/fd/{writing}") == 0
        assert os.read(reading, 10) == b"told\n"
    finally:
        os.close(reading)
        os.close(writing)


def test_signals_reach_the_program(fake: Valgrind, tmp_path: Path) -> None:
    ready = tmp_path / "ready"

    def send() -> None:
        while not ready.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGUSR1)

    sender = threading.Thread(target=send)
    sender.start()
    before = signal.getsignal(signal.SIGUSR1)
    script = f"trap 'exit 42' USR1; touch {ready}; while :; do sleep 0.02; done"
    assert run(fake, tmp_path, "/bin/sh", "-c", script) == 42
    sender.join()
    assert signal.getsignal(signal.SIGUSR1) == before
