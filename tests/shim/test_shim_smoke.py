def test_smoke(any_job, tools):
    ended = any_job.run(tools.session(tools.checkpoint(1), tools.checkpoint(2)), SCR_CRIT_DEBUG="3")
    print(ended.stdout, ended.stderr)
    any_job.lose_cache()
    out = any_job.folder / "out"
    out.mkdir()
    ended = any_job.run(
        [("init",), ("restart", out, "ckpt.2/state.{rank}"), ("finalize",)], SCR_CRIT_DEBUG="3"
    )
    print(ended.stdout, ended.stderr)
    for rank in range(2):
        assert any_job.is_packed(f"ckpt.2/state.{rank}")
        assert (out / f"ckpt.2.{rank}.0").read_bytes() == tools.after_restart(tools.content(tools.STATE, 20))
    assert any_job.leftovers() == []
