/* options.c - the parameters of the shim.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests: tests/shim/test_shim_modes.py.
 */
#define _GNU_SOURCE
#include "options.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "message.h"

/* ---- Values --------------------------------------------------------------------------------- */

/* Ranks share their environment and files: one of them says what is wrong with a parameter. */
static void refuse(const shim_options *options, const char *name, const char *value,
                   const char *expected, const char *instead)
{
    if (options->rank.rank <= 0 || options->debug > 0)
        SHIM_WARNING("%s is \"%s\", expected %s: %s", name, value, expected, instead);
}

/* NULL when it is unset or empty. */
static const char *value_of(const char *name)
{
    const char *value = shim_config_get(name);
    return value && *value ? value : NULL;
}

static int choice(const char *value, const char *const *choices, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(value, choices[i]) == 0)
            return i;
    return -1;
}

static const char *const digits[] = {"0", "1", "2", "3"};

/* Index of the value among the choices; 0 when it is unset, -1 when it is none of them. */
static int read_choice(const char *name, const char *const *choices, int count)
{
    const char *value = value_of(name);
    return value ? choice(value, choices, count) : 0;
}

/* A switch that the user meant to throw, though we cannot tell which way: store whole files. */
static int read_cautious(shim_options *options, const char *name, const char *const *choices,
                         int count, const char *expected)
{
    int chosen = read_choice(name, choices, count);
    if (chosen < 0) {
        refuse(options, name, value_of(name), expected, "files are stored whole");
        options->doubtful = true;
    }
    return chosen;
}

static void copy(char *target, size_t size, const char *value)
{
    snprintf(target, size, "%s", value ? value : "");
}

/* ---- Each parameter ------------------------------------------------------------------------- */

static bool read_plugin(shim_options *options)
{
    int chosen = read_choice("SCR_CRIT_PLUGIN", digits, 2);
    options->debug = read_choice("SCR_CRIT_DEBUG", digits, 4);
    bool bad_debug = options->debug < 0;
    if (bad_debug)
        options->debug = 0;
    if (chosen == 0)
        return false;
    options->rank = shim_rank_find();
    shim_message_speaker(options->rank.rank, options->debug);
    if (chosen < 0)
        refuse(options, "SCR_CRIT_PLUGIN", value_of("SCR_CRIT_PLUGIN"), "0 or 1",
               "the plugin stays off");
    else if (bad_debug)
        refuse(options, "SCR_CRIT_DEBUG", value_of("SCR_CRIT_DEBUG"), "0, 1, 2 or 3", "0 is used");
    return chosen == 1;
}

static void read_modes(shim_options *options)
{
    static const char *const modes[] = {"pack", "zero"};
    options->zero = read_cautious(options, "SCR_CRIT_MODE", modes, 2, "pack or zero") == 1;
    options->dry_run = read_cautious(options, "SCR_CRIT_DRYRUN", digits, 2, "0 or 1") == 1;
}

static bool is_built_in(const char *codec)
{
    const char *names = scr_crit_codecs();
    size_t length = strlen(codec);
    for (const char *at = names; (at = strstr(at, codec)); at += length)
        if ((at == names || at[-1] == ' ') && (at[length] == '\0' || at[length] == ' '))
            return true;
    return false;
}

static void read_codec(shim_options *options)
{
    static const char *const codecs[] = {"none", "blosc2-zstd"};
    const char *name = "SCR_CRIT_CODEC";
    int chosen = read_choice(name, codecs, 2);
    if (chosen < 0) {
        refuse(options, name, value_of(name), "none or blosc2-zstd", "none is used");
    } else if (chosen == 1 && !is_built_in(codecs[chosen])) { /* asking loads the codec's library */
        refuse(options, name, codecs[chosen], scr_crit_codecs(),
               "it cannot be used in this process (is libblosc2 there?), none is used");
        chosen = -1;
    }
    options->codec = chosen == 1 ? SCR_CRIT_CODEC_BLOSC2_ZSTD : SCR_CRIT_CODEC_NONE;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns the number of bytes, 0 when the text is no pattern. */
static size_t read_hex(const char *text, uint8_t *bytes)
{
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        text += 2;
    size_t length = strlen(text);
    if (length % 2 || length > 2 * SHIM_FILL_MAX)
        return 0;
    for (size_t i = 0; i < length / 2; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return 0;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    return length / 2;
}

static void read_fill(shim_options *options)
{
    const char *name = "SCR_CRIT_FILL", *value = value_of(name);
    options->fill_size = 0;
    if (!value || strcmp(value, "zero") == 0)
        return;
    if (strcmp(value, "nan") == 0) {
        options->fill[0] = 0xff; /* a NaN in every IEEE format, whatever the element's size */
        options->fill_size = 1;
        return;
    }
    options->fill_size = read_hex(value, options->fill);
    if (options->fill_size == 0)
        refuse(options, name, value, "zero, nan, or 1 to 64 bytes as pairs of hexadecimal digits",
               "zero is used");
}

static void read_plan_path(shim_options *options)
{
    const char *value = value_of("SCR_CRIT_PLAN");
    if (value) {
        if (!shim_path_absolute(value, options->plan, sizeof options->plan))
            copy(options->plan, sizeof options->plan, value);
    } else if (!shim_path_join(options->plan, sizeof options->plan, options->prefix,
                               ".scr_crit/plan")) {
        options->plan[0] = '\0';
    }
}

static void read_stage(shim_options *options)
{
    size_t count = 0;
    const char *chosen = value_of("SCR_CRIT_STAGE");
    options->stage_chosen = chosen != NULL;
    const char *cache = value_of("SCR_CACHE_BASE");
    const char *bases[] = {chosen, cache, "/dev/shm", getenv("TMPDIR")};
    for (size_t i = 0; i < SHIM_STAGE_BASES; i++)
        if (bases[i] && *bases[i])
            copy(options->stage[count++], SHIM_PATH_SIZE, bases[i]);
}

static void read_job(shim_options *options)
{
    static const char *const batch_systems[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID",
                                                "FLUX_JOB_ID"};
    const char *value = value_of("SCR_JOB_ID");
    for (size_t i = 0; !value && i < sizeof batch_systems / sizeof *batch_systems; i++)
        value = getenv(batch_systems[i]);
    copy(options->job, sizeof options->job, value && *value ? value : "nojob");
}

/* ---- Lists of globs ------------------------------------------------------------------------- */

/* Next glob of a list, separated by commas or colons; false at the end. A list that is too long for
 * `glob` cannot occur: both have SHIM_PATH_SIZE. */
static bool next_glob(const char **at, char *glob)
{
    *at += strspn(*at, ",:");
    size_t length = strcspn(*at, ",:");
    memcpy(glob, *at, length);
    glob[length] = '\0';
    *at += length;
    return length > 0;
}

static bool list_matches(const char *list, const char *path, const char *dataset)
{
    char glob[SHIM_PATH_SIZE];
    /* Rank unknown: the answer must be the same on every rank that routes the file. */
    while (next_glob(&list, glob))
        if (scr_crit_glob(glob, path, -1, dataset) == 1)
            return true;
    return false;
}

static void read_list(shim_options *options, const char *name, char *list)
{
    const char *value = value_of(name);
    bool fits = !value || strlen(value) < SHIM_PATH_SIZE;
    copy(list, SHIM_PATH_SIZE, fits ? value : "");
    char glob[SHIM_PATH_SIZE];
    bool well_formed = fits;
    for (const char *at = list; well_formed && next_glob(&at, glob);)
        well_formed = scr_crit_glob(glob, "name", -1, NULL) >= 0;
    if (well_formed)
        return;
    refuse(options, name, value, "globs as in a plan's patterns, separated by commas or colons",
           "files are stored whole");
    options->doubtful = true;
}

bool shim_options_wants(const shim_options *options, const char *path, const char *dataset)
{
    if (options->include[0] && !list_matches(options->include, path, dataset))
        return false;
    return !list_matches(options->exclude, path, dataset);
}

void shim_options_read(shim_options *options, const char *system_file)
{
    *options = (shim_options){0};
    shim_config_read(system_file, options->prefix, sizeof options->prefix);
    options->plugin = read_plugin(options);
    if (!options->plugin)
        return;
    read_modes(options);
    read_codec(options);
    read_fill(options);
    read_plan_path(options);
    read_stage(options);
    read_job(options);
    read_list(options, "SCR_CRIT_INCLUDE", options->include);
    read_list(options, "SCR_CRIT_EXCLUDE", options->exclude);
}
