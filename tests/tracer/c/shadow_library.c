/* shadow_library.c - the shadow as a shared library, for test_tracer_shadow.py.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "native.h"
#include "shadow.h"

#include <pub_tool_xarray.h>

/* As much of Valgrind's arrays as the shadow uses. */
struct _XArray {
    char *items;
    Word count;
    SizeT bytes;
};

XArray *VG_(newXA)(Alloc_Fn_t allocate, const HChar *cost_centre, Free_Fn_t release, Word bytes)
{
    (void)allocate, (void)cost_centre, (void)release;
    XArray *made = calloc(1, sizeof *made);
    made->bytes = (SizeT)bytes;
    return made;
}

void VG_(deleteXA)(XArray *array)
{
    free(array->items);
    free(array);
}

Word VG_(addToXA)(XArray *array, const void *item)
{
    array->items = realloc(array->items, (SizeT)(array->count + 1) * array->bytes);
    memcpy(array->items + (SizeT)array->count * array->bytes, item, array->bytes);
    return array->count++;
}

void *VG_(indexXA)(const XArray *array, Word n)
{
    return array->items + (SizeT)n * array->bytes;
}

Word VG_(sizeXA)(const XArray *array)
{
    return array->count;
}

void VG_(dropTailXA)(XArray *array, Word n)
{
    array->count -= n;
}

void VG_(assert_fail)(Bool is_core, const HChar *condition, const HChar *file, Int line,
                      const HChar *function, const HChar *format, ...)
{
    (void)is_core, (void)function, (void)format;
    fprintf(stderr, "%s:%d: %s\n", file, line, condition);
    abort();
}

/* The states of a window, one byte each, as shadow_piece tells them. */
void window_states(Addr start, SizeT bytes, UChar *states)
{
    for (SizeT done = 0; done < bytes;) {
        shadow_state state;
        const SizeT length = shadow_piece(start + done, bytes - done, &state);
        memset(states + done, (int)state, length);
        done += length;
    }
}

/* The length of each piece, looked at from every byte of a window. */
void window_pieces(Addr start, SizeT bytes, ULong *lengths)
{
    shadow_state state;
    for (SizeT i = 0; i < bytes; i++)
        lengths[i] = shadow_piece(start + i, bytes - i, &state);
}

/* Whether an access of so many bytes at each address of a window would be reported. */
void window_guards(Addr start, SizeT bytes, SizeT access, UChar *guarded)
{
    for (SizeT i = 0; i < bytes; i++)
        guarded[i] = shadow_guarded(start + i, access);
}
