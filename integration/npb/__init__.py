"""The NAS kernels, run by ``python -m integration.npb``; their modules import each other by bare names."""
