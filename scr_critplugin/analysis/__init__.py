"""Analysis of programs: finds the element states that a criticality map holds.

`profile` is the dependence engine for NumPy programs, functional or in place. It is built as autograd is: a
small tape (`tape`, `boxes`), memory that can be written to (`memory`, `writes`, `windows`), a
sweep (`sweep`), and rules in a table (`rules`, `pulls`). What it finds is checked by running on from altered
states (`trials`): all uncritical elements at once (`poison`), or sampled ones (`perturbation`). Analysis
never opens a checkpoint file. Tests: ``tests/test_dependence*.py``, ``tests/test_inplace.py``,
``tests/test_poison.py``, ``tests/test_perturbation.py``.
"""

from scr_critplugin.analysis.branches import Branch
from scr_critplugin.analysis.dependence import Profile, profile
from scr_critplugin.analysis.gradient import Gradient
from scr_critplugin.analysis.perturbation import PerturbationReport
from scr_critplugin.analysis.poison import PoisonReport
from scr_critplugin.analysis.sinks import Sink

__all__ = ["Branch", "Gradient", "PerturbationReport", "PoisonReport", "Profile", "Sink", "profile"]
