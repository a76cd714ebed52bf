/* names.c - see names.h. */
#include "names.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

void scrl_names_add(scrl_names *names, const char *name)
{
    size_t size = strlen(name) + 1;
    names->bytes = scrl_grow(names->bytes, names->length + size);
    memcpy(names->bytes + names->length, name, size);
    names->length += size;
    names->count++;
}

const char *scrl_names_next(const scrl_names *names, const char *name)
{
    if (!name) {
        return names->length > 0 ? names->bytes : NULL;
    }
    name += strlen(name) + 1;
    return name < names->bytes + names->length ? name : NULL;
}

void scrl_names_free(scrl_names *names)
{
    free(names->bytes);
    *names = (scrl_names){0};
}
