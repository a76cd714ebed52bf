/* real.h - the functions of the real libscr behind the wrappers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * In the shared shim they are looked up: behind the shim in the loader's order (LD_PRELOAD, or
 * linked before -lscr), else in a libscr that the process has loaded already, else in one loaded
 * from $SCR_ROOT or by the loader. With -Wl,--wrap (SHIM_WRAP defined) the linker binds them. May
 * use path.h. Tests: tests/shim/test_shim_libscr.py.
 */
#ifndef SHIM_REAL_H
#define SHIM_REAL_H

/* Address of a function of the real libscr, or of a library it depends on; NULL when there is none.
 */
void *shim_real_find(const char *symbol);

#endif
