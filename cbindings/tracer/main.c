/* main.c - the tool's entry: options, what the preload requests, and which instrumentation runs.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: tests/tracer/test_tracer_build.py, test_tracer_accesses.py.
 */
#include "blocks.h"
#include "files.h"
#include "instrument.h"
#include "origins.h"
#include "phase.h"
#include "requests.h"
#include "shadow.h"
#include "syscalls.h"
#include "trace_file.h"
#include "watch.h"

#include <pub_tool_clientstate.h>
#include <pub_tool_libcproc.h>
#include <pub_tool_options.h>
#include <pub_tool_xarray.h>

const HChar *option_trace_out = NULL;
const HChar *option_dump = NULL;
Int option_until_flat = 0;

static XArray *warnings; /* of HChar *: every text that was told */

void tool_warn(const HChar *text)
{
    if (!warnings)
        warnings = VG_(newXA)(VG_(malloc), "main.warnings", VG_(free), sizeof(HChar *));
    for (Word i = 0; i < VG_(sizeXA)(warnings); i++) {
        if (VG_(strcmp)(*(HChar **)VG_(indexXA)(warnings, i), text) == 0)
            return;
    }
    HChar *kept = VG_(strdup)("main.warning", text);
    VG_(addToXA)(warnings, &kept);
    VG_(umsg)("warning: %s\n", text);
    const HChar *texts[] = {kept};
    trace_text_line("warning", texts, 1);
}

/* ---- Options ---- */

static Bool take_option(const HChar *argument)
{
    if VG_STR_CLO (argument, "--trace-out", option_trace_out) {
    } else if VG_STR_CLO (argument, "--dump", option_dump) {
    } else if VG_BINT_CLO (argument, "--until-flat", option_until_flat, 0, 1 << 30) {
    } else {
        return False;
    }
    return True;
}

static void print_usage(void)
{
    VG_(printf)
    ("    --trace-out=<prefix>      write <prefix>.trace and <prefix>.runs (must be given)\n"
     "    --dump=<glob>             files that match are checkpoints too, though written\n"
     "                              outside SCR's brackets\n"
     "    --until-flat=<steps>      end the trace when so many steps in a row decided nothing;\n"
     "                              0: at the program's end [0]\n");
}

static void print_debug_usage(void)
{
}

/* ---- What the preload requests ---- */

static void memory_read(Addr address, SizeT bytes)
{
    if (phase == PHASE_TRACK)
        shadow_read(address, bytes);
    else if (phase_follows())
        origins_use(address, bytes);
}

static void memory_written(Addr address, SizeT bytes)
{
    if (phase == PHASE_TRACK)
        shadow_write(address, bytes);
    else if (phase_follows())
        origins_overwrite(address, bytes, ORIGIN_DERIVED);
}

static Bool take_request(ThreadId tid, UWord *arguments, UWord *answer)
{
    if (!VG_IS_TOOL_USERREQ('S', 'X', arguments[0]))
        return False;
    *answer = 0;
    switch ((trace_request)arguments[0]) {
    case TRACE_OUTPUT_STARTED:
        phase_output_started(tid, (const HChar *)arguments[1], arguments[2]);
        break;
    case TRACE_ROUTED:
        phase_routed((const HChar *)arguments[1], (const HChar *)arguments[2]);
        break;
    case TRACE_OUTPUT_COMPLETING:
        phase_output_completing(tid, arguments[1] != 0);
        break;
    case TRACE_RESTART_STARTED:
        phase_restart_started(tid, (const HChar *)arguments[1]);
        break;
    case TRACE_RESTART_COMPLETING:
        phase_restart_completing(tid, arguments[1] != 0);
        break;
    case TRACE_CHECKPOINT_ASKED:
        phase_checkpoint_asked(tid, arguments[1] != 0);
        break;
    case TRACE_FINALIZING:
        phase_finalizing();
        break;
    case TRACE_READ:
        memory_read(arguments[1], arguments[2]);
        break;
    case TRACE_WRITTEN:
        memory_written(arguments[1], arguments[2]);
        break;
    case TRACE_SHARED:
        watch_shared(arguments[1], arguments[2]);
        break;
    case TRACE_LOADS_ARE_WRITES:
        instrument_loads_are_writes(tid, arguments[1] != 0);
        break;
    case TRACE_IO_PASSED_ON:
        files_passed_on(arguments[1] != 0);
        break;
    case TRACE_RANK:
        trace_line("rank %lu %lu", arguments[1], arguments[2]);
        break;
    case TRACE_WARNING:
        tool_warn((const HChar *)arguments[1]);
        break;
    default:
        return False;
    }
    return True;
}

/* ---- Start, translation, end ---- */

static void started(void)
{
    if (!option_trace_out) {
        VG_(fmsg_bad_option)("--trace-out", "scr_crit needs --trace-out=PREFIX.\n");
    }
    trace_open(option_trace_out);
}

static IRSB *instrument(VgCallbackClosure *closure, IRSB *block, const VexGuestLayout *layout,
                        const VexGuestExtents *extents, const VexArchInfo *arch, IRType guest_word,
                        IRType host_word)
{
    (void)closure, (void)extents, (void)arch, (void)guest_word, (void)host_word;
    if (phase == PHASE_TRACK)
        return instrument_accesses(block, layout);
    if (phase_follows())
        return instrument_copies(block, layout);
    return block;
}

/* The code that Valgrind gives here is 0 whatever the program did: phase_exit_asked has it. */
static void ended(Int exit_code)
{
    (void)exit_code;
    phase_program_ended();
}

static void forked_child(ThreadId tid)
{
    (void)tid;
    phase_forked_child();
}

static void before_options(void)
{
    VG_(details_name)("scr_crit");
    VG_(details_version)(TRACER_VERSION);
    VG_(details_description)("which checkpoint bytes a restart needs");
    VG_(details_copyright_author)("by the authors of scr_critplugin; GPL-2.0-or-later.");
    VG_(details_bug_reports_to)("the scr_critplugin project");
    VG_(details_avg_translation_sizeB)(500);
    VG_(basic_tool_funcs)(started, instrument, ended);
    VG_(needs_command_line_options)(take_option, print_usage, print_debug_usage);
    VG_(needs_client_requests)(take_request);
    VG_(track_start_client_code)(instrument_thread_runs);
    blocks_init();
    syscalls_init();
    origins_init();
    VG_(atfork)(NULL, NULL, forked_child);
}

VG_DETERMINE_INTERFACE_VERSION(before_options)
