"""What the C programs' header comments say, as states of each byte of their checkpoint files.

Used by ``test_traced_c.py`` and ``test_traced_oracle.py``. Each function takes a rank, a file's name, the
step that was saved and whether the checkpoint was read (a restart) or written.
"""

from __future__ import annotations

import numpy as np
from traced_truth import CRITICAL, DEAD, UNTOLD, UNUSED, Truth, doubles, octets, singles


def stale(count: int) -> np.ndarray:
    """stdio_pieces: the elements that are overwritten first."""
    k = np.arange(count)
    return k * k % 7 < 3


def raw_write(rank: int, name: str, step: int, restart: bool) -> Truth:
    truth = Truth(
        [
            ("magic", octets(8)),
            ("step", octets(8)),
            ("grid", doubles(10, 12)),
            ("work", doubles(50)),
            ("table", doubles(30)),
            ("history", doubles(40)),
        ]
    )
    truth["grid"] = DEAD
    truth["grid"][1:-1, 1:-1] = CRITICAL
    truth["grid"][::9, ::11] = UNUSED
    truth["work"] = DEAD
    truth["table"] = UNUSED
    truth["history"][step:7] = DEAD
    truth["history"][7:] = UNUSED
    return truth


def stdio_pieces(rank: int, name: str, step: int, restart: bool) -> Truth:
    truth = Truth(
        [
            ("text", octets(16)),
            ("small", doubles(100)),
            ("large", doubles(3000)),
            ("single", doubles(37)),
            ("flags", octets(61)),
        ]
    )
    for array in ("small", "large", "single", "flags"):
        truth[array][stale(len(truth[array]))] = DEAD
    if restart:
        truth["flags"] = CRITICAL  # what getc returned is compared with EOF
    return truth.read_by_stdio() if restart else truth


def structs(rank: int, name: str, step: int, restart: bool) -> Truth:
    truth = Truth([("step", octets(8)), ("direct", octets(100, 40)), ("by_value", octets(100, 40))])
    for array in ("direct", "by_value"):
        truth[array][:, 8:12] = DEAD  # mass
        truth[array][:, 16] = DEAD  # tag
        truth[array][:, 17:24] = UNUSED  # padding
        truth[array][:, 24:32] = DEAD  # rate
        truth[array][:, 32:40] = UNUSED  # spare
    return truth.read_by_stdio() if restart else truth


def conversion(rank: int, name: str, step: int, restart: bool) -> Truth:
    truth = Truth(
        [
            ("step", octets(8)),
            ("single", singles(64)),
            ("low", singles(64)),
            ("octet", octets(64)),
            ("negated", doubles(64)),
            ("wide", doubles(64)),
        ]
    )
    truth["low"] = DEAD
    truth["octet"] = DEAD
    truth["negated"][:, :7] = DEAD
    truth["wide"][:, :4] = DEAD
    if restart:
        truth["wide"] = DEAD
    return truth.read_by_stdio() if restart else truth


def lifetimes(rank: int, name: str, step: int, restart: bool) -> Truth:
    truth = Truth(
        [
            ("step", octets(8)),
            ("now", doubles(50)),
            ("next", doubles(50)),
            ("scratch", doubles(50)),
            ("rare", doubles(50)),
            ("guard", doubles(50)),
            ("grown", doubles(1000 if step == 3 else 5000)),
            ("packed", doubles(40, 2)),
        ]
    )
    truth["next"] = DEAD
    truth["scratch"] = DEAD
    truth["rare"] = CRITICAL if step == 3 else UNUSED
    truth["guard"] = UNUSED
    truth["grown"][::2] = DEAD
    truth["packed"][:, 1] = DEAD
    if restart:
        truth["packed"] = DEAD | UNTOLD  # at most stdio's buffer has seen it
    return truth.read_by_stdio() if restart else truth


def two_files(rank: int, name: str, step: int, restart: bool) -> Truth:
    if name.startswith("field"):
        truth = Truth([("step", octets(8)), ("rows", doubles(4, 25))])
        truth["rows"][rank] = DEAD
        truth["rows"][3] = DEAD
        return truth.read_by_stdio() if restart else truth
    truth = Truth([("quiet", doubles(30)), ("logged", doubles(30))])
    truth["quiet"] = DEAD
    truth["quiet"][15:] = DEAD if step == 3 else UNUSED
    truth["logged"] = DEAD if restart else CRITICAL
    return truth.read_by_stdio() if restart else truth


def posix_calls(rank: int, name: str, step: int, restart: bool) -> Truth:
    truth = Truth(
        [
            ("patched", octets(8)),
            ("twice", doubles(20)),
            ("duped", doubles(20)),
            ("gap", octets(100)),
            ("mapped", doubles(20)),
            ("appended", doubles(20)),
            ("spliced", doubles(20)),
            ("tail", octets(52)),
        ]
    )
    for array in ("twice", "duped", "mapped", "appended"):
        truth[array] = DEAD
    if restart:  # seen through a mapping of the whole file, but not used
        for part in ("gap", "spliced", "tail"):
            truth[part] = DEAD
    return truth


def unaligned(rank: int, name: str, step: int, restart: bool) -> Truth:
    truth = Truth([("step", octets(8)), ("records", octets(20000, 13)), ("wide", octets(200001))])
    truth["records"][::3, :8] = DEAD
    truth["records"][::2, 8:12] = DEAD
    truth["records"][:, 12] = UNUSED
    pieces = truth["wide"][:-1].reshape(-1, 16)
    pieces[np.arange(len(pieces)) % 5 < 2] = DEAD
    truth["wide"][-1] = UNUSED
    return truth.read_by_stdio() if restart else truth


def openmp(rank: int, name: str, step: int, restart: bool) -> Truth:
    truth = Truth([("step", octets(8)), ("cells", doubles(3000)), ("packed", doubles(600))])
    truth["cells"][::4] = DEAD
    truth["packed"] = DEAD if step == 3 else UNUSED
    # What the second and the third thread copied last may still be in their registers: of chunks of seven
    # elements (written), or of 200 (read: memcpy takes 16 elements and more at the end, then the first ones).
    for k in ((200, 204), (376, 404), (576, 600)) if restart else ((581, 588), (595, 600)):
        truth["packed"][slice(*k)] |= CRITICAL
    return truth.read_by_stdio() if restart else truth


def packed_ahead(rank: int, name: str, step: int, restart: bool) -> Truth:
    truth = Truth([("step", octets(8)), ("packed", doubles(800))])
    truth["packed"] = CRITICAL if restart else DEAD
    return truth
