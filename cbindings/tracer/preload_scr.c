/* preload_scr.c
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "requests.h"

#define WRAP(name) I_WRAP_SONAME_FNNAME_ZU(Za, name)

int WRAP(SCR_Start_checkpoint)(void);
int WRAP(SCR_Start_checkpoint)(void)
{
    OrigFn real;
    int answer;
    VALGRIND_GET_ORIG_FN(real);
    CALL_FN_W_v(answer, real);
    VALGRIND_DO_CLIENT_REQUEST_STMT(TRACE_OUTPUT_STARTED, "", 1, 0, 0, 0);
    return answer;
}
