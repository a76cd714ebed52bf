/*
 * copy.h - one file copied, with its mode and times.
 */
#ifndef SCRL_COPY_H
#define SCRL_COPY_H

/* Returns 0, or -1 after an error message; a partly written target is removed. */
int scrl_copy_file(const char *source, const char *target);

#endif
