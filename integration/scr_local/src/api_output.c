/* api_output.c - SCR_Start/Complete_checkpoint and SCR_Start/Complete_output. */
#include <stddef.h>

#include "api.h"
#include "output.h"

static int start(scrl_state state, const char *name, int flags)
{
    scrl.state = state;
    if (scrl.disabled) {
        return SCRL_FAILURE;
    }
    scrl_output_start(name, flags);
    return SCR_SUCCESS;
}

static int complete(int valid)
{
    scrl.state = SCRL_IDLE;
    if (scrl.disabled) {
        return SCRL_FAILURE;
    }
    return scrl_output_complete(valid);
}

int SCR_Start_checkpoint(void)
{
    scrl_require_idle("SCR_Start_checkpoint()");
    return start(SCRL_CHECKPOINT, NULL, SCR_FLAG_CHECKPOINT);
}

int SCR_Complete_checkpoint(int valid)
{
    scrl_require_open(SCRL_CHECKPOINT, "SCR_Start_checkpoint()", "SCR_Complete_checkpoint()");
    return complete(valid);
}

int SCR_Start_output(const char *name, int flags)
{
    scrl_require_idle("SCR_Start_output()");
    return start(SCRL_OUTPUT, name, flags);
}

int SCR_Complete_output(int valid)
{
    scrl_require_open(SCRL_OUTPUT, "SCR_Start_output()", "SCR_Complete_output()");
    return complete(valid);
}
