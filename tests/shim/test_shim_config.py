"""Parameters come from where SCR's own come from, in its order and syntax."""

from __future__ import annotations

import pytest


def level(ended):
    """Which SCR_CRIT_DEBUG was in force: 1 shows totals of all ranks, 2 each packed file."""
    return sum(word in ended.stdout for word in (": plugin on: ", ": packed /", ": routed for output: "))


@pytest.fixture
def configured(job, tools):
    """Run one checkpoint with configuration files and settings; return the level of debug in force."""

    def run(*, environment=None, user=None, named=None, program=None, verb="config", system=None):
        extra = {}
        unset = ["SCR_CRIT_PLUGIN", "SCR_CRIT_PLAN", "SCR_CRIT_STAGE"]
        (job.prefix / ".scrconf").write_text("" if user is None else user)
        if named is not None:
            (job.folder / "named.conf").write_text(named)
            extra["SCR_CONF_FILE"] = job.folder / "named.conf"
        if system is not None:
            (job.folder / "root" / "etc").mkdir(parents=True)
            (job.folder / "root" / "etc" / "scr.conf").write_text(system)
            extra["SCR_ROOT"] = job.folder / "root"
        for line in (environment or "").split():
            name, value = line.split("=", 1)
            extra[name] = value
        calls = [
            (verb, *(setting.split("=", 1) if verb == "configf" else (setting,))) for setting in program or ()
        ]
        base = ["SCR_CRIT_PLUGIN=1", f"SCR_CRIT_PLAN={job.folder}/plan", f"SCR_CRIT_STAGE={job.stage}"]
        lines = [*(("config", setting) for setting in base), *calls, *tools.session(tools.checkpoint(1))]
        ended = job.run(lines, unset=unset, **extra)
        assert job.is_packed("ckpt.1/state.0")
        return level(ended)

    return run


def test_each_source_alone(configured):
    assert configured() == 0
    assert configured(environment="SCR_CRIT_DEBUG=1") == 1
    assert configured(user="SCR_CRIT_DEBUG=2\n") == 2
    assert configured(program=["SCR_CRIT_DEBUG=3"]) == 3
    assert configured(program=["SCR_CRIT_DEBUG=1"], verb="configf") == 1


def test_precedence_of_sources(configured):
    user, program = "SCR_CRIT_DEBUG=2\n", ["SCR_CRIT_DEBUG=3"]
    assert configured(environment="SCR_CRIT_DEBUG=1", user=user, program=program) == 1
    assert configured(user=user, program=program) == 2
    # a named file replaces the one under the prefix
    assert configured(user=user, named="SCR_CRIT_DEBUG=1\n", program=program) == 1
    assert configured(user=user, named="", program=program) == 3


def test_the_systems_file_comes_last(configured):
    assert configured(system="SCR_CRIT_DEBUG=2\n") == 2


def test_the_program_may_take_a_setting_back(configured):
    assert configured(program=["SCR_CRIT_DEBUG=3", "SCR_CRIT_DEBUG="]) == 0


@pytest.mark.parametrize(
    "text, expected",
    [
        ("# SCR_CRIT_DEBUG=3\n", 0),
        ("  scr_crit_debug \t=  2  # a comment\n", 2),
        ("SCR_CRIT_DEBUG=1\nSCR_CRIT_DEBUG=2\n", 2),
        ("CKPT=0 SCR_CRIT_DEBUG=3\n", 0),
        ("SCR_CRIT_DEBUG=$LEVEL\n", 1),
        ("SCR_CRIT_DEBUG=$NOT_SET\n", 0),
        ("SCR_CRIT_DEBUG=\\$LEVEL\n", 1),
        ("SCR_CRIT_DEBUG=2", 2),
        ("\n\n   \nSCR_CRIT_DEBUG=2\n", 2),
    ],
)
def test_syntax_of_the_file(configured, monkeypatch, text, expected):
    monkeypatch.setenv("LEVEL", "1")
    assert configured(user=text) == expected


@pytest.mark.parametrize("value", ["$LEVEL", "${LEVEL}"])
def test_variables_in_the_environment(configured, monkeypatch, value):
    monkeypatch.setenv("LEVEL", "2")
    assert configured(environment=f"SCR_CRIT_DEBUG={value}") == 2


def test_the_prefix_is_scrs_own(job, tools):
    """SCR_PREFIX from the program; .scrconf and the default plan are found under it."""
    (job.prefix / ".scr_crit").mkdir()
    (job.folder / "plan").rename(job.prefix / ".scr_crit" / "plan")
    (job.prefix / ".scrconf").write_text("SCR_CRIT_PLUGIN=1\n")
    lines = [("config", f"SCR_PREFIX={job.prefix}/./"), *tools.session(tools.checkpoint(1))]
    ended = job.run(lines, unset=["SCR_PREFIX", "SCR_CRIT_PLUGIN", "SCR_CRIT_PLAN"])
    assert ended.quiet
    assert job.is_packed("ckpt.1/state.1")


def test_queries_still_reach_scr(job, tools):
    lines = [("config", "SCR_CRIT_DEBUG=1"), ("query", "SCR_CRIT_DEBUG"), ("query", "SCR_CRIT_FILL")]
    ended = job.run([*lines, *tools.session(tools.checkpoint(1))])
    assert ended.reports("query", 0) == [["SCR_CRIT_DEBUG", "1"], ["SCR_CRIT_FILL", "(none)"]]
    assert level(ended) == 1


def test_settings_do_not_outlive_finalize(job, tools):
    """SCR forgets them as well, and may be initialised again."""
    first = [("config", "SCR_CRIT_DEBUG=1"), *tools.session(tools.checkpoint(1))]
    ended = job.run([*first, *tools.session(tools.checkpoint(2))])
    assert ended.stdout.count(": plugin on: ") == 2  # by two ranks, once
    assert job.is_packed("ckpt.2/state.0")
    assert ended.stdout.count(": totals of rank 0") == 2
