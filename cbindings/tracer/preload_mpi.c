/* preload_mpi.c - the wrappers of all MPI calls that are told by the table.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A send buffer is read when the call starts, a receive buffer is written when it has completed:
 * the tool may not see either happen, since other processes, the kernel or a network card move the
 * bytes; and while copies are followed, what is sent counts as used and what came from others as
 * unknown. Marking twice (a Fortran entry that calls the C one) does no harm.
 */
#include "preload_mpi.h"

#define MOST_STATUS_WORDS 8

static word with_status(const mpi_library *mpi, const call_rule *rule, OrigFn real, word *arguments,
                        long *received)
{
    word own[MOST_STATUS_WORDS] = {0};
    if (arguments[rule->status] == mpi->status_ignore)
        arguments[rule->status] = (word)own;
    word result = call_real(real, rule->words, arguments);
    if ((int)result == 0)
        *received = status_bytes_received(mpi, (const void *)arguments[rule->status]);
    return result;
}

static word through_table(const call_rule *rule, OrigFn real, word *arguments)
{
    const mpi_library *mpi = mpi_find(real);
    if (!mpi)
        return call_real(real, rule->words, arguments);

    transfer moved;
    bool later = rule->request != 0 || rule->window != 0;
    transfer_take(mpi, rule, arguments, later, &moved);
    if (!rule->persistent)
        transfer_mark_read(mpi, &moved);

    long received = -1; /* all */
    word result = rule->status ? with_status(mpi, rule, real, arguments, &received)
                               : call_real(real, rule->words, arguments);
    if ((int)result != 0) {
        transfer_drop(mpi, &moved);
    } else if (rule->request) {
        requests_add(mpi, arguments[rule->request], rule->persistent, &moved);
    } else if (rule->window) {
        windows_add(mpi, arguments[rule->window], &moved);
    } else {
        transfer_mark_written(mpi, &moved, received);
        transfer_drop(mpi, &moved);
    }
    return result;
}

#define CALL(name, n, ...)                                                                         \
    static const call_rule rule_##name = {.words = n, __VA_ARGS__};                                \
    WRAPPER(name, n, through_table(&rule_##name, real, arguments))
#define CALL_C(name, n, ...)                                                                       \
    CALL(name, n, __VA_ARGS__)                                                                     \
    CALL(name##_c, n, __VA_ARGS__, .large = true)
#define COLLECTIVE(name, nonblocking, n, n1, n2, ...)                                              \
    CALL_C(name, n, __VA_ARGS__)                                                                   \
    CALL_C(nonblocking, n1, __VA_ARGS__, .request = n1)                                            \
    CALL_C(name##_init, n2, __VA_ARGS__, .request = n2, .persistent = true)

#include "preload_mpi_table.h"
