/* totals.c - what the shim did, and why it left files whole.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests: tests/shim/test_shim_modes.py.
 */
#define _GNU_SOURCE
#include "totals.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "message.h"

static const struct cause {
    const char *word;   /* in the closing line */
    const char *reason; /* in the warning; NULL: as the user asked for, or harmless: no warning */
} causes[SHIM_CAUSES] = {
    [SHIM_CAUSE_UNPLANNED] = {"not in the plan", NULL},
    [SHIM_CAUSE_EXCLUDED] = {"excluded", NULL},
    [SHIM_CAUSE_DRY_RUN] = {"dry run", NULL},
    [SHIM_CAUSE_DOUBT] = {"doubtful parameter", NULL},
    [SHIM_CAUSE_SHARED] = {"shared", "other ranks may write it as well"},
    [SHIM_CAUSE_MISFIT] = {"misfit", "it does not fit its plan entry"},
    [SHIM_CAUSE_NO_GAIN] = {"no gain", NULL},
    [SHIM_CAUSE_PACKED] = {"packed already", "the application wrote a packed file"},
    [SHIM_CAUSE_NO_STAGE] = {"no staging", "it cannot be staged"},
    [SHIM_CAUSE_NAME] = {"long name", "the name of its staged copy would be too long for SCR"},
    [SHIM_CAUSE_LINKED] = {"link", "it is a link or no regular file"},
    [SHIM_CAUSE_BYPASSED] =
        {"written elsewhere",
         "the application wrote it under its own name, not where SCR_Route_file said"},
    [SHIM_CAUSE_CHANGED] = {"changed", "it changed while it was packed"},
    [SHIM_CAUSE_OPEN] = {"still open",
                         "it is still open for writing, or mapped: close it before SCR is told "
                         "that it is complete, or what is written later may be lost"},
    [SHIM_CAUSE_NO_SPACE] = {"no space", "there is no space to pack it"},
    [SHIM_CAUSE_CODEC] = {"codec", "the codec failed"},
    [SHIM_CAUSE_SYSTEM] = {"system error", "packing it failed"},
};

static scr_crit_shim_totals totals;
static uint64_t whole_for[SHIM_CAUSES];
static uint64_t zeroed_files, zeroed_bytes, uncritical_bytes;
static uint64_t measured_files, measured_before, measured_after;

shim_cause shim_cause_of(int status)
{
    switch (status) {
    case SCR_CRIT_ERR_MISFIT:
        return SHIM_CAUSE_MISFIT;
    case SCR_CRIT_ERR_NOGAIN:
        return SHIM_CAUSE_NO_GAIN;
    case SCR_CRIT_ERR_NESTED:
        return SHIM_CAUSE_PACKED;
    case SCR_CRIT_ERR_CHANGED:
        return SHIM_CAUSE_CHANGED;
    case SCR_CRIT_ERR_NOSPACE:
        return SHIM_CAUSE_NO_SPACE;
    case SCR_CRIT_ERR_CODEC:
        return SHIM_CAUSE_CODEC;
    default:
        return SHIM_CAUSE_SYSTEM;
    }
}

void shim_totals_whole(shim_cause cause, const char *path, const char *detail)
{
    const struct cause *why = &causes[cause];
    totals.whole_files++;
    if (whole_for[cause]++ == 0 && why->reason)
        SHIM_WARNING("%s is stored whole: %s%s%s%s", path, why->reason, detail ? " (" : "",
                     detail ? detail : "", detail ? ")" : "");
    else
        shim_message_debug_at(2, "%s is stored whole: %s%s%s", path, why->word, detail ? ": " : "",
                              detail ? detail : "");
}

void shim_totals_packed(const scr_crit_info *info, double seconds)
{
    totals.packed_files++;
    totals.bytes_before += info->file_bytes;
    totals.bytes_after += info->packed_bytes;
    totals.pack_seconds += seconds;
}

void shim_totals_measured(const scr_crit_info *info, double seconds)
{
    measured_files++;
    measured_before += info->file_bytes;
    measured_after += info->packed_bytes < info->file_bytes ? info->packed_bytes : info->file_bytes;
    totals.pack_seconds += seconds;
}

void shim_totals_zeroed(const scr_crit_info *info, double seconds)
{
    zeroed_files++;
    zeroed_bytes += info->file_bytes;
    uncritical_bytes += info->file_bytes - info->kept_bytes;
    totals.pack_seconds += seconds;
}

void shim_totals_expanded(double seconds)
{
    totals.expanded_files++;
    totals.expand_seconds += seconds;
}

void shim_totals_spent(double seconds)
{
    totals.pack_seconds += seconds;
}

double shim_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void scr_crit_shim_get_totals(scr_crit_shim_totals *out)
{
    if (out)
        *out = totals;
}

void shim_totals_reset(void)
{
    memset(&totals, 0, sizeof totals);
    memset(whole_for, 0, sizeof whole_for);
    zeroed_files = zeroed_bytes = uncritical_bytes = 0;
    measured_files = measured_before = measured_after = 0;
}

/* ---- The closing line ----------------------------------------------------------------------- */

typedef struct line {
    char text[2048];
    size_t used;
} line;

static void add(line *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(line *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t left = sizeof out->text - out->used;
    int length = vsnprintf(out->text + out->used, left, format, arguments);
    va_end(arguments);
    if (length > 0)
        out->used += (size_t)length < left ? (size_t)length : left - 1;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 100.0;
}

static void add_whole(line *out)
{
    add(out, "; %" PRIu64 " whole", totals.whole_files);
    const char *before = " (";
    for (int i = 0; i < SHIM_CAUSES; i++) {
        if (whole_for[i] == 0)
            continue;
        add(out, "%s%" PRIu64 " %s", before, whole_for[i], causes[i].word);
        before = ", ";
    }
    if (totals.whole_files)
        add(out, ")");
}

static void add_special_modes(line *out)
{
    if (zeroed_files)
        add(out, "; zeroed %" PRIu64 " files, %" PRIu64 " of %" PRIu64 " bytes uncritical",
            zeroed_files, uncritical_bytes, zeroed_bytes);
    if (measured_files)
        add(out, "; dry run: %" PRIu64 " files would be %" PRIu64 " -> %" PRIu64 " bytes (%.1f %%)",
            measured_files, measured_before, measured_after,
            percent(measured_after, measured_before));
}

void shim_totals_report(shim_rank rank)
{
    line out = {.used = 0};
    add(&out, "totals of rank %d", rank.rank);
    if (rank.size > 0)
        add(&out, " of %d", rank.size);
    add(&out, ": packed %" PRIu64 " files, %" PRIu64 " -> %" PRIu64 " bytes (%.1f %%), %.3f s",
        totals.packed_files, totals.bytes_before, totals.bytes_after,
        percent(totals.bytes_after, totals.bytes_before), totals.pack_seconds);
    add(&out, "; expanded %" PRIu64 " files, %.3f s", totals.expanded_files, totals.expand_seconds);
    add_whole(&out);
    add_special_modes(&out);
    if (shim_message_debug() > 0)
        shim_message_debug_at(1, "%s", out.text);
    else
        shim_message_tell("%s", out.text);
}
