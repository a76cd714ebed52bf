/*
 * api.h - what the api_*.c files share: the order of calls. They hold the functions of scr.h, which
 * alone are visible outside the library, and call the rest of it; nothing calls them from inside,
 * because a caller may have put its own SCR_... in front.
 */
#ifndef SCRL_API_H
#define SCRL_API_H

#pragma GCC visibility push(default)
#include "scr.h"
#pragma GCC visibility pop

#include "job.h"

/* Stops the job unless the library is started and between datasets; `call` is for the message. */
void scrl_require_idle(const char *call);

/* Stops the job unless `start` was the last of the opening calls. */
void scrl_require_open(scrl_state state, const char *start, const char *complete);

#endif
