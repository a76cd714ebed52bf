"""The criticality map: which elements of which checkpoint variable a restart needs.

A map holds one state per element (:class:`ElementState`) and where that knowledge came from. It knows
nothing of files: layouts say where the elements lie, plans what to drop. Set algebra, comparison,
and summary; the stored form is ``mapfile``'s. Imports NumPy, ``mapfile``, ``_dtypes`` and the errors only.
Tests: ``tests/test_criticality.py``.
"""

from __future__ import annotations

import enum
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ._dtypes import dtype_from_json, dtype_to_json
from .errors import MapError, UnknownVariableError
from .mapfile import MAP_FORMAT_VERSION, StoredVariable, read_map, write_map
from .provenance import Sources

__all__ = [
    "MAP_FORMAT_VERSION",
    "CriticalityMap",
    "ElementState",
    "MapComparison",
    "Order",
    "SummaryRow",
    "Variable",
    "VariableComparison",
]

Order = Literal["C", "F"]
ElementType = str | type | np.dtype[Any]
"""What may stand for a dtype where a dict would mean one dtype per name."""


class ElementState(enum.IntEnum):
    """What is known of one element of a checkpoint variable."""

    CRITICAL = 0
    """A restart needs it (also: nothing is known)."""
    INERT = 1
    """It is read, but cannot influence the output."""
    DEAD = 2
    """Its first access after the checkpoint is a write."""
    UNUSED = 3
    """Never accessed in the window that was looked at."""


# Weakest claim first. "Unused" says nothing of what comes after the window, so it is the least one may say
# and needs evidence of its own (DESIGN sections 2 and 9). "Inert" is weaker than "dead": what is overwritten
# before any read cannot influence the output either, but an inert element is read, and so meets the fill.
_CLAIM_STRENGTH = np.zeros(4, np.uint8)
_CLAIM_STRENGTH[[ElementState.CRITICAL, ElementState.UNUSED, ElementState.INERT, ElementState.DEAD]] = range(
    4
)
_STATE_OF_STRENGTH = np.argsort(_CLAIM_STRENGTH).astype(np.uint8)


class Variable:
    """Element states of one checkpoint variable. Immutable.

    Parameters
    ----------
    name : str
        Name of the checkpoint variable: not empty, printable.
    states : array_like of int, the variable's shape
        One :class:`ElementState` per element; ``()`` is the shape of a scalar. Copied.
    dtype : dtype_like
        Element type in the application. Object and sub-array types are refused.
    order : {"C", "F"}
        Memory order of the array in the application.
    magnitudes : array_like of float, the variable's shape, optional
        How strongly the output responds to each element: absolute derivatives, 0 or more, NaN where there is
        none. They say nothing about the states. Only for real and complex floating-point elements; kept as
        float32, in which a number that is not zero does not become zero. Copied.

    Raises
    ------
    MapError
        An argument is not as described; ``key`` names the variable and the argument.
    """

    __slots__ = ("dtype", "magnitudes", "name", "order", "states")

    name: str
    states: NDArray[np.uint8]
    dtype: np.dtype[Any]
    order: Order
    magnitudes: NDArray[np.float32] | None

    def __init__(
        self,
        name: str,
        states: ArrayLike,
        dtype: DTypeLike,
        order: Order = "C",
        magnitudes: ArrayLike | None = None,
    ) -> None:
        set_field = object.__setattr__
        set_field(self, "name", _checked_name(name))
        set_field(self, "states", _checked_states(name, states))
        set_field(self, "dtype", _checked_dtype(name, dtype))
        set_field(self, "order", _checked_order(name, order))
        set_field(self, "magnitudes", _checked_magnitudes(self, magnitudes))

    def __setattr__(self, attribute: str, value: Any) -> None:
        raise AttributeError(f"Variable is immutable: cannot set {attribute!r}")

    def __delattr__(self, attribute: str) -> None:
        raise AttributeError(f"Variable is immutable: cannot delete {attribute!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (Variable, (self.name, self.states, self.dtype, self.order, self.magnitudes))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the variable."""
        return self.states.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.states.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.states.size

    @property
    def nbytes(self) -> int:
        """Bytes of the variable itself (not of its states)."""
        return self.size * self.dtype.itemsize

    @property
    def critical(self) -> NDArray[np.bool_]:
        """True where a restart needs the element; boolean, the variable's shape, read-only."""
        return _read_only(np.asarray(self.states == ElementState.CRITICAL))

    @property
    def uncritical(self) -> NDArray[np.bool_]:
        """True where the element is inert, dead or unused; boolean, the variable's shape, read-only."""
        return _read_only(np.asarray(self.states != ElementState.CRITICAL))

    def counts(self) -> dict[ElementState, int]:
        """Number of elements in each state; every state is a key."""
        return {state: int(np.count_nonzero(self.states == state)) for state in ElementState}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Variable):
            return NotImplemented
        alike = _difference(self, other) is None and self.name == other.name
        return alike and _same_states(self, other) and _same_magnitudes(self, other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        uncritical = self.size - self.counts()[ElementState.CRITICAL]
        return f"<Variable {self.name!r} {self.dtype} {self.shape}: {uncritical} of {self.size} uncritical>"


@dataclass(frozen=True)
class SummaryRow:
    """One variable in a map's summary; the field names are the keys of the JSON form."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    elements: int
    critical: int
    inert: int
    dead: int
    unused: int

    @property
    def uncritical(self) -> int:
        """Elements that are inert, dead or unused."""
        return self.elements - self.critical


@dataclass(frozen=True)
class VariableComparison:
    """How two maps judge one variable; counts of elements."""

    name: str
    elements: int
    both: int
    """Critical in both maps."""
    only_self: int
    """Critical in the map that was asked, uncritical in the other."""
    only_other: int
    """Uncritical in the map that was asked, critical in the other."""
    neither: int
    """Critical in no map."""
    same_state: int
    """The very same state in both maps."""


@dataclass(frozen=True)
class MapComparison:
    """Result of :meth:`CriticalityMap.compare`."""

    rows: tuple[VariableComparison, ...]
    only_in_self: tuple[str, ...]
    only_in_other: tuple[str, ...]
    mismatched: Mapping[str, str]
    """Variables of both maps that cannot be compared, each with the reason."""

    @property
    def identical(self) -> bool:
        """The same variables with the same state of every element (provenance and magnitudes apart)."""
        if self.only_in_self or self.only_in_other or self.mismatched:
            return False
        return all(row.same_state == row.elements for row in self.rows)


class CriticalityMap(Mapping[str, Variable]):
    """Element states of every checkpoint variable, with provenance.

    A read-only mapping from variable name to :class:`Variable`, in the order given. ``==`` compares the
    variables with their magnitudes, not the provenance.

    Parameters
    ----------
    variables : iterable of Variable
        Names must differ.
    provenance : mapping, optional
        Where the states came from (engine, outputs, steps, program, date ...): anything JSON can hold, and
        NumPy scalars and arrays, which become numbers and lists.

    Raises
    ------
    MapError
        A name occurs twice, or the provenance is not JSON.
    """

    def __init__(self, variables: Iterable[Variable], provenance: Mapping[str, Any] | None = None) -> None:
        self._variables: dict[str, Variable] = {}
        for variable in variables:
            if variable.name in self._variables:
                raise MapError("two variables have this name; give each its own", key=variable.name)
            self._variables[variable.name] = variable
        self.provenance: dict[str, Any] = _as_json(provenance or {})

    @classmethod
    def from_masks(
        cls,
        masks: Mapping[str, ArrayLike],
        dtypes: Mapping[str, DTypeLike] | ElementType,
        *,
        orders: Mapping[str, Order] | Order = "C",
        uncritical: ElementState = ElementState.INERT,
        provenance: Mapping[str, Any] | None = None,
    ) -> CriticalityMap:
        """Map from boolean masks, True where critical.

        Parameters
        ----------
        masks : mapping of name to boolean array of the variable's shape
        dtypes : dtype, type or str, or mapping of name to dtype_like
            Element types; a single one serves all variables.
        orders : {"C", "F"}, or mapping of name to it
            Memory orders; names a mapping leaves out are "C".
        uncritical : ElementState
            State of the elements that are not critical. A mask says no more than that they do not matter,
            so the default is inert.
        provenance : mapping, optional

        Raises
        ------
        MapError
            A mask is not boolean, a dtype is missing, or a name in `dtypes` or `orders` has no mask.
        """
        if uncritical not in (ElementState.INERT, ElementState.DEAD, ElementState.UNUSED):
            raise MapError(f"found {uncritical!r}, expected INERT, DEAD or UNUSED", key="uncritical")
        dtype_of: Mapping[str, DTypeLike] = (
            dtypes if isinstance(dtypes, Mapping) else dict.fromkeys(masks, dtypes)
        )
        order_of: Mapping[str, Order] = (
            orders if isinstance(orders, Mapping) else dict.fromkeys(masks, orders)
        )
        for argument, names in (("dtypes", dtype_of), ("orders", order_of)):
            for name in names:
                if name not in masks:
                    raise MapError(f"{argument} names a variable that has no mask", key=name)
        return cls(
            [
                Variable(
                    name,
                    np.where(_checked_mask(name, mask), ElementState.CRITICAL, uncritical),
                    _dtype_for(name, dtype_of),
                    order_of.get(name, "C"),
                )
                for name, mask in masks.items()
            ],
            provenance,
        )

    # Mapping ------------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Variable:
        try:
            return self._variables[name]
        except KeyError:
            known = ", ".join(self._variables) or "none"
            raise UnknownVariableError(f"no such variable in the map; it has: {known}", key=name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def __contains__(self, name: object) -> bool:
        return name in self._variables

    def __repr__(self) -> str:
        return f"<CriticalityMap of {', '.join(self._variables) or 'no variables'}>"

    # Set algebra --------------------------------------------------------------------------------------------

    def union(self, *others: CriticalityMap) -> CriticalityMap:
        """Map of what may be said in every one of the maps: over steps, inputs or ranks.

        Critical in one is critical in all. Among uncritical states the weakest claim wins: unused before
        inert before dead. Of magnitudes the largest are kept, NaN before any number, and none of a variable
        that lacks them in one of the maps. The provenance is ``{"union": [...]}`` with every distinct source
        and, where several maps share one, their number; nested unions are flattened.

        Raises
        ------
        MapError
            The maps do not hold the same variables with the same shape, dtype and order.
        """
        for number, other in enumerate(others, start=1):
            self._require_same_variables(other, number)
        if not others:
            return self
        variables = [_united([each, *(other[name] for other in others)]) for name, each in self.items()]
        sources = Sources()
        for each in (self, *others):
            sources.add(each.provenance)
        return CriticalityMap(variables, sources.provenance())

    def _require_same_variables(self, other: CriticalityMap, number: int) -> None:
        for name in (*self, *other):
            if name not in self or name not in other:
                holder = "the first map" if name in self else f"map {number}"
                raise MapError(f"maps cannot be united: only {holder} has this variable", key=name)
            reason = _difference(self[name], other[name])
            if reason is not None:
                raise MapError(f"maps cannot be united: {reason} (first map and map {number})", key=name)

    def compare(self, other: CriticalityMap) -> MapComparison:
        """Counts, per variable, of what both maps call critical, and of where they differ. States only."""
        rows: list[VariableComparison] = []
        mismatched: dict[str, str] = {}
        for name in self:
            if name not in other:
                continue
            reason = _difference(self[name], other[name])
            if reason is None:
                rows.append(_compare_variable(self[name], other[name]))
            else:
                mismatched[name] = reason
        return MapComparison(
            rows=tuple(rows),
            only_in_self=tuple(name for name in self if name not in other),
            only_in_other=tuple(name for name in other if name not in self),
            mismatched=mismatched,
        )

    def summary(self) -> tuple[SummaryRow, ...]:
        """One row per variable with its counts of states."""
        return tuple(_summary_row(variable) for variable in self.values())

    def to_json_dict(self) -> dict[str, list[dict[str, Any]]]:
        """The summary as ``scr_crit show MAP --json`` prints it."""
        rows = [asdict(row) for row in self.summary()]
        return {"variables": [{**row, "shape": list(row["shape"])} for row in rows]}

    # Storage ------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the map to exactly this file name, in the form of ``docs/maps.md``.

        The file appears complete or not at all: it is written under a temporary name beside `path`, synced
        and renamed.

        Raises
        ------
        StorageError
            The operating system refused; ``errno`` says why. An older file at `path` is untouched.
        """
        described = [
            StoredVariable(each.name, each.states, each.dtype, each.order, each.magnitudes)
            for each in self.values()
        ]
        write_map(path, described, self.provenance)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CriticalityMap:
        """Read a map, checking every array of it.

        Raises
        ------
        StorageError
            The file cannot be opened or read.
        MapError
            The file is no map, is damaged, or was written in a newer format; ``path`` and ``key`` name the
            place.
        """
        described, provenance = read_map(path)
        try:
            return cls([Variable(*each) for each in described], provenance)
        except MapError as error:
            raise MapError(error.message, path=path, key=error.key) from error


# Checks of single values ------------------------------------------------------------------------------------


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def _checked_name(name: object) -> str:
    if not isinstance(name, str):
        raise MapError(f"variable name: found {name!r}, expected a str", key="name")
    if not name or not name.isprintable():
        raise MapError(f"variable name: found {name!r}, expected printable characters", key="name")
    return name


def _checked_states(name: str, states: ArrayLike) -> NDArray[np.uint8]:
    given = np.asarray(states)
    if given.dtype.kind not in "iu":
        raise MapError(
            f"states: found dtype {given.dtype}, expected integers 0 to 3 (masks: CriticalityMap.from_masks)",
            key=name,
        )
    if given.size and (given.min() < 0 or given.max() > max(ElementState)):
        outside = np.flatnonzero((given < 0) | (given > max(ElementState)))
        first = np.unravel_index(outside[0], given.shape)
        where = ", ".join(str(int(index)) for index in first)
        raise MapError(
            f"states: found {given[first]} at [{where}], expected 0 to {max(ElementState):d}", key=name
        )
    return cast("NDArray[np.uint8]", _read_only(np.array(given, np.uint8, order="C")))


def _checked_dtype(name: str, dtype: DTypeLike) -> np.dtype[Any]:
    if dtype is None:  # np.dtype(None) is float64: a forgotten argument must not become one
        raise MapError("dtype: found None, expected a NumPy dtype", key=name)
    try:
        found = np.dtype(dtype)
    except (TypeError, ValueError) as error:
        raise MapError(f"dtype: found {dtype!r}, expected a NumPy dtype ({error})", key=name) from error
    if found.hasobject:
        raise MapError(f"dtype: found {found}, expected one without Python objects", key=name)
    if found.subdtype is not None:
        raise MapError(f"dtype: found sub-array type {found}, expected its extents in the shape", key=name)
    if found.itemsize == 0:
        raise MapError(f"dtype: found {found} with no bytes, expected at least one byte an element", key=name)
    try:
        restored = dtype_from_json(dtype_to_json(found))
    except ValueError as error:  # overlapping or unordered fields have no descr
        raise MapError(f"dtype: {found} cannot be written to a file ({error})", key=name) from error
    if restored != found:
        raise MapError(
            f"dtype: {found} cannot be written to a file: it would come back as {restored}", key=name
        )
    return found


def _checked_order(name: str, order: object) -> Order:
    if order not in ("C", "F"):
        raise MapError(f"order: found {order!r}, expected 'C' or 'F'", key=name)
    return order


def _checked_magnitudes(variable: Variable, magnitudes: ArrayLike | None) -> NDArray[np.float32] | None:
    if magnitudes is None:
        return None
    key = variable.name
    if variable.dtype.kind not in "fc":
        raise MapError(
            f"magnitudes: found dtype {variable.dtype}, expected real or complex floating point: nothing "
            "else has derivatives",
            key=key,
        )
    given = np.asarray(magnitudes)
    if given.dtype.kind != "f":
        raise MapError(f"magnitudes: found dtype {given.dtype}, expected floating point", key=key)
    if given.shape != variable.shape:
        raise MapError(f"magnitudes: found shape {given.shape}, expected {variable.shape}", key=key)
    if np.any(given < 0):
        raise MapError(f"magnitudes: found {np.nanmin(given)}, expected 0 or more, or NaN", key=key)
    return cast("NDArray[np.float32]", _read_only(_as_float32(given)))


def _as_float32(given: NDArray[Any]) -> NDArray[np.float32]:
    """A copy in float32; what is neither zero nor infinite stays so."""
    limits = np.finfo(np.float32)
    with np.errstate(over="ignore", under="ignore"):
        narrow = np.array(given, np.float32, order="C")
    np.copyto(narrow, limits.smallest_subnormal, where=(narrow == 0) & (given != 0))
    np.copyto(narrow, limits.max, where=np.isinf(narrow) & ~np.isinf(given))
    return narrow


def _checked_mask(name: str, mask: ArrayLike) -> NDArray[np.bool_]:
    given = np.asarray(mask)
    if given.dtype != np.bool_:
        raise MapError(f"mask: found dtype {given.dtype}, expected bool (True where critical)", key=name)
    return given


def _dtype_for(name: str, dtypes: Mapping[str, DTypeLike]) -> DTypeLike:
    if name not in dtypes:
        raise MapError("dtypes does not name this variable; give its element type", key=name)
    return dtypes[name]


def _as_json(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Copy of the provenance as a file would give it back, so that saving changes nothing."""
    try:
        text = json.dumps(dict(provenance), default=_numpy_to_json, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise MapError(f"expected values that JSON can hold ({error})", key="provenance") from error
    return cast("dict[str, Any]", json.loads(text))


def _numpy_to_json(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"found {type(value).__name__}")


# Set algebra ------------------------------------------------------------------------------------------------


def _difference(one: Variable, other: Variable) -> str | None:
    """Why two variables cannot be set against each other, or None."""
    for label in ("shape", "dtype", "order"):
        found, expected = getattr(other, label), getattr(one, label)
        if found != expected:
            return f"{label} differs, {expected} and {found}"
    return None


def _same_states(one: Variable, other: Variable) -> bool:
    return bool(np.array_equal(one.states, other.states))


def _same_magnitudes(one: Variable, other: Variable) -> bool:
    if one.magnitudes is None or other.magnitudes is None:
        return one.magnitudes is other.magnitudes
    return bool(np.array_equal(one.magnitudes, other.magnitudes, equal_nan=True))


def _united(variables: Sequence[Variable]) -> Variable:
    first = variables[0]
    return Variable(first.name, _weakest(variables), first.dtype, first.order, _largest(variables))


def _largest(variables: Sequence[Variable]) -> NDArray[np.float32] | None:
    found = [variable.magnitudes for variable in variables if variable.magnitudes is not None]
    # The largest of what some maps know would be called the largest of all.
    return np.asarray(np.maximum.reduce(found)) if len(found) == len(variables) else None


def _weakest(variables: Sequence[Variable]) -> NDArray[np.uint8]:
    strength = _CLAIM_STRENGTH[variables[0].states]
    for variable in variables[1:]:
        strength = np.minimum(strength, _CLAIM_STRENGTH[variable.states])
    return _STATE_OF_STRENGTH[strength]


def _compare_variable(one: Variable, other: Variable) -> VariableComparison:
    mine, theirs = one.critical, other.critical
    both = int(np.count_nonzero(mine & theirs))
    only_self = int(np.count_nonzero(mine)) - both
    only_other = int(np.count_nonzero(theirs)) - both
    return VariableComparison(
        name=one.name,
        elements=one.size,
        both=both,
        only_self=only_self,
        only_other=only_other,
        neither=one.size - both - only_self - only_other,
        same_state=int(np.count_nonzero(one.states == other.states)),
    )


def _summary_row(variable: Variable) -> SummaryRow:
    counts = variable.counts()
    return SummaryRow(
        name=variable.name,
        shape=variable.shape,
        dtype=str(variable.dtype),
        elements=variable.size,
        critical=counts[ElementState.CRITICAL],
        inert=counts[ElementState.INERT],
        dead=counts[ElementState.DEAD],
        unused=counts[ElementState.UNUSED],
    )
