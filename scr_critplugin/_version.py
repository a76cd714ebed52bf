"""The package's version, written once, in ``cbindings/include/scr_crit.h``, and carried by the metadata."""

from importlib.metadata import version

__version__ = version("scr_critplugin")
