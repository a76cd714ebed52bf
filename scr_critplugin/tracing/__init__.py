"""From traces of a compiled program to a plan: what ``scr_crit trace`` does beside starting the program.

``trace_file`` reads what the access tracer (``cbindings/tracer``) wrote on one rank; ``symbols``, ``shapes``
and ``naming`` find what the memory is called; ``uniting`` puts ranks, checkpoints, runs and both sides
together; ``file_patterns`` generalises file names; ``planning`` makes layout, maps and plan. ``launch``
starts Valgrind, ``run_folder`` keeps what the ranks of a job leave. May import the rest of the package but
``cli`` and ``analysis``. Tests: ``tests/test_tracing_*.py``.
"""
