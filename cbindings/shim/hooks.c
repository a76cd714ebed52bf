/* hooks.c - the table of file-list hooks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * May use scr_crit.h only. Tests: tests/shim/test_shim_hooks.py.
 */
#include "hooks.h"

#include <stdlib.h>
#include <string.h>

size_t shim_hooks_clients;

static scr_crit_hooks *clients;
static size_t capacity;

/* A callback may unregister clients, itself among them: while events are handed out, a client that
 * goes only leaves an empty place, which is closed afterwards. */
static unsigned dispatching;
static bool has_gaps;

static int make_room(void)
{
    if (shim_hooks_clients < capacity)
        return SCR_CRIT_OK;
    size_t larger = capacity ? 2 * capacity : 4;
    scr_crit_hooks *grown = realloc(clients, larger * sizeof *grown);
    if (!grown)
        return SCR_CRIT_ERR_NOMEM;
    clients = grown;
    capacity = larger;
    return SCR_CRIT_OK;
}

static int insert(const scr_crit_hooks *hooks, bool first)
{
    if (!hooks || !hooks->name)
        return SCR_CRIT_ERR_ARG;
    int status = make_room();
    if (status)
        return status;
    size_t place = first ? 0 : shim_hooks_clients;
    memmove(clients + place + 1, clients + place, (shim_hooks_clients - place) * sizeof *clients);
    clients[place] = *hooks;
    shim_hooks_clients++;
    return SCR_CRIT_OK;
}

int shim_hooks_register_first(const scr_crit_hooks *hooks)
{
    return insert(hooks, true);
}

int scr_crit_hooks_register(const scr_crit_hooks *hooks)
{
    return insert(hooks, false);
}

static void close_gaps(void)
{
    size_t kept = 0;
    for (size_t i = 0; i < shim_hooks_clients; i++)
        if (clients[i].name)
            clients[kept++] = clients[i];
    shim_hooks_clients = kept;
    has_gaps = false;
}

int scr_crit_hooks_unregister(void *context)
{
    for (size_t i = 0; i < shim_hooks_clients; i++) {
        if (!clients[i].name || clients[i].context != context)
            continue;
        clients[i] = (scr_crit_hooks){0};
        has_gaps = true;
        if (!dispatching)
            close_gaps();
        return SCR_CRIT_OK;
    }
    return SCR_CRIT_ERR_ARG;
}

static size_t begin(void)
{
    dispatching++;
    return shim_hooks_clients;
}

static void end(void)
{
    if (--dispatching == 0 && has_gaps)
        close_gaps();
}

/* Run a callback of every client that has it. The client is copied: the table may move meanwhile.
 */
#define FOR_EACH_CLIENT(index, callback, ...)                                                      \
    do {                                                                                           \
        size_t count = begin();                                                                    \
        for (size_t i = 0; i < count; i++) {                                                       \
            scr_crit_hooks client = clients[index];                                                \
            if (client.callback)                                                                   \
                client.callback(__VA_ARGS__);                                                      \
        }                                                                                          \
        end();                                                                                     \
    } while (0)
#define IN_ORDER i
#define IN_REVERSE (count - 1 - i)

void shim_hooks_initialized(void)
{
    FOR_EACH_CLIENT(IN_ORDER, initialized, client.context);
}

void shim_hooks_output_started(const char *dataset, int flags)
{
    FOR_EACH_CLIENT(IN_ORDER, output_started, client.context, dataset, flags);
}

typedef int (*routed_callback)(void *context, const char *name, char *path, size_t size);

static int route(bool restart, const char *name, char *path, size_t size)
{
    int failed = 0;
    size_t count = begin();
    for (size_t i = 0; i < count && !failed; i++) {
        scr_crit_hooks client = clients[i];
        routed_callback routed = restart ? client.restart_routed : client.output_routed;
        if (routed)
            failed = routed(client.context, name, path, size);
    }
    end();
    return failed;
}

int shim_hooks_output_routed(const char *name, char *path, size_t size)
{
    return route(false, name, path, size);
}

int shim_hooks_output_completing(int valid)
{
    size_t count = begin();
    for (size_t i = count; i-- > 0;) {
        scr_crit_hooks client = clients[i];
        if (client.output_completing)
            valid = client.output_completing(client.context, valid);
    }
    end();
    return valid;
}

void shim_hooks_output_completed(int status)
{
    FOR_EACH_CLIENT(IN_REVERSE, output_completed, client.context, status);
}

void shim_hooks_restart_started(const char *dataset)
{
    FOR_EACH_CLIENT(IN_ORDER, restart_started, client.context, dataset);
}

int shim_hooks_restart_routed(const char *name, char *path, size_t size)
{
    return route(true, name, path, size);
}

void shim_hooks_restart_completed(int valid)
{
    FOR_EACH_CLIENT(IN_ORDER, restart_completed, client.context, valid);
}

void shim_hooks_finalizing(void)
{
    FOR_EACH_CLIENT(IN_REVERSE, finalizing, client.context);
}
