/* preload_mpi.c - stub
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "requests.h"

typedef int preload_mpi_has_nothing_yet;
