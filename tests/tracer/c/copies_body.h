/* copies_body.h - what the tests' functions have in common: a state, and what is read of it later.
 *
 * Of `state`, go_on reads the elements with odd index first, and overwrites the even ones.
 */
#ifndef COPIES_BODY_H
#define COPIES_BODY_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __cplusplus
#define BODY extern "C"
#else
#define BODY
#endif

#define OUTLINE __attribute__((noinline, noclone))

#ifndef ELEMENT
#define ELEMENT double
#endif
enum { ELEMENTS = 96 };
static ELEMENT state[ELEMENTS];
static volatile ELEMENT sink;

BODY void prepare(void)
{
    for (int k = 0; k < ELEMENTS; k++)
        state[k] = (ELEMENT)(3 * k + 1);
}

/* Outlined, so that no compiler makes vectors of it: exactly these elements are read. */
OUTLINE static void read_element(volatile ELEMENT *from)
{
    sink = *from;
}

OUTLINE static void clear_element(volatile ELEMENT *to)
{
    *to = 0;
}

#ifndef OWN_GO_ON
BODY void go_on(void)
{
    for (int k = 0; k < ELEMENTS; k++) {
        if (k % 2)
            read_element(&state[k]);
        clear_element(&state[k]);
    }
}
#endif

OUTLINE static void write_all(const char *path, const void *from, size_t bytes)
{
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    if (write(fd, from, bytes) != (ssize_t)bytes)
        abort();
    close(fd);
}

#endif
