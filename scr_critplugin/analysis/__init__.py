"""Analysis of programs: finds the element states that a criticality map holds.

`profile` is the dependence engine for NumPy programs, functional or in place, on one rank or several. It
never opens a checkpoint file. Modules by what they are for, each group using those above it only:

* **Rules**: `masks`, `calls`; how masks are pulled back (`pulls`, `moves`, `structured`, `ufunc_methods`,
  `sparse_products`, `windows`), and the table (`rules`).
* **Recording**: the `tape`; arrays that record (`boxes`, `dispatch`), their `memory` and what is written to
  it (`writes`; for derivatives `values` and `cotangents`); NumPy as the program's modules see it
  (`namespaces`, `reach`, `stand_ins`, `opaque`); where values leave the data flow (`departures`); `recording`
  switches all of it on.
* **Ranks**: `ranks`, `mailbox`, `communication`, `crossings`, `methods`, `operations`, `buffers`, `parcels`.
* **The program**: its plain and recorded runs (`program`, `outside`; `blocks`, `bits`), what it hides
  (`hidden`, `process_copy`), how its steps repeat (`structure`, `period`, `counters`, `paths`, `kinds`,
  `foresight`), and the steps to sweep (`recorder`, `replay`, `history`).
* **Sweeping**: over one tape (`sweep`), over steps (`recurrence`), over a sample (`runsets`, `sparse`,
  `hulls`, `tiles`); what feeds `sinks`.
* **Derivatives**: `compositions`, `adjoints`, `memory_adjoints`, `gradient`.
* **Checks**: runs from altered states (`fills`, `replacements`, `trials`), all uncritical elements at
  once (`poison`, `bisection`) or sampled ones (`perturbation`).
* **Profiles**: several points and inputs (`union`, `branches`), `options`, `findings`, `dependence`.

Tests: ``tests/test_dependence*.py``, ``tests/test_inplace*.py``, and those that the modules name.
"""

from scr_critplugin.analysis.branches import Branch
from scr_critplugin.analysis.dependence import Profile, profile
from scr_critplugin.analysis.gradient import Gradient
from scr_critplugin.analysis.perturbation import PerturbationReport
from scr_critplugin.analysis.poison import PoisonReport
from scr_critplugin.analysis.sinks import Sink

__all__ = ["Branch", "Gradient", "PerturbationReport", "PoisonReport", "Profile", "Sink", "profile"]
