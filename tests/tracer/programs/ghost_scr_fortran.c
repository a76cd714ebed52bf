/* ghost_scr_fortran.c - ghost_checkpoint for Fortran programs. */
#include "ghost_scr.h"

void ghost_checkpoint_to(const char *name, const void *memory, size_t bytes);
void ghost_checkpoint_to(const char *name, const void *memory, size_t bytes)
{
    ghost_checkpoint(name, memory, bytes);
}
