/*
 * settings.c - see settings.h. Table-driven: a new number is one line here and one in settings.h.
 */
#include "settings.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "memory.h"
#include "message.h"
#include "params.h"
#include "path.h"

#define DEFAULT_BASE "/dev/shm"
#define DEFAULT_JOB "defjobid"

typedef struct {
    const char *key;
    size_t offset;
    int standard;
} number_setting;

#define NUMBER(key, field, standard)                                                               \
    {                                                                                              \
        key, offsetof(scrl_settings, field), standard                                              \
    }

/* SCR_ENABLE and SCR_DEBUG come first: what follows is reported at the level they set. */
static const number_setting numbers[] = {
    NUMBER("SCR_ENABLE", enable, 1),
    NUMBER("SCR_DEBUG", debug, 0),
    NUMBER("SCR_CACHE_BYPASS", cache_bypass, 1),
    NUMBER("SCR_CACHE_SIZE", cache_size, 1),
    NUMBER("SCR_CACHE_PURGE", cache_purge, 0),
    NUMBER("SCR_DISTRIBUTE", distribute, 1),
    NUMBER("SCR_FETCH", fetch, 1),
    NUMBER("SCR_FETCH_BYPASS", fetch_bypass, 0),
    NUMBER("SCR_FLUSH", flush, 10),
    NUMBER("SCR_FLUSH_ON_RESTART", flush_on_restart, 0),
    NUMBER("SCR_GLOBAL_RESTART", global_restart, 0),
    NUMBER("SCR_DROP_AFTER_CURRENT", drop_after_current, 0),
    NUMBER("SCR_PREFIX_SIZE", prefix_size, 0),
    NUMBER("SCR_PREFIX_PURGE", prefix_purge, 0),
    NUMBER("SCR_CHECKPOINT_INTERVAL", checkpoint_interval, 0),
    NUMBER("SCR_CHECKPOINT_SECONDS", checkpoint_seconds, 0),
    NUMBER("SCR_CHECKPOINT_OVERHEAD", checkpoint_overhead, 0),
    NUMBER("SCR_HALT_SECONDS", halt_seconds, 0),
};

static int read_number(const number_setting *setting)
{
    char *text = scrl_param(setting->key);
    if (!text) {
        return setting->standard;
    }
    char *end = text;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || value < INT_MIN || value > INT_MAX) {
        scrl_abort("%s is `%s', expected a whole number of an int's size", setting->key, text);
    }
    if ((end == text || *end) && scrl.rank == 0) {
        /* SCR takes the digits in front: so do we, but not in silence */
        scrl_warn("%s is `%s', expected a whole number; taken as %ld", setting->key, text, value);
    }
    free(text);
    return (int)value;
}

static void read_numbers(void)
{
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        int value = read_number(&numbers[i]);
        memcpy((char *)&scrl.settings + numbers[i].offset, &value, sizeof(value));
        if (scrl.rank == 0) {
            scrl_dbg(1, "%s=%d", numbers[i].key, value);
        }
    }
}

/* The parameter, else the environment variable `variable`, else `standard` (all may be NULL). */
static char *read_text(const char *key, const char *variable, const char *standard)
{
    char *text = scrl_param(key);
    if (!text && variable && getenv(variable)) {
        text = scrl_strdup(getenv(variable));
    }
    if (!text && standard) {
        text = scrl_strdup(standard);
    }
    if (scrl.rank == 0) {
        scrl_dbg(1, "%s=%s", key, text ? text : "(none)");
    }
    return text;
}

static void make_absolute(const char *key, const char *text, char out[SCR_MAX_FILENAME])
{
    if (scrl_path_absolute(text, out, SCR_MAX_FILENAME) != 0) {
        scrl_abort("%s `%s' cannot be made an absolute path of less than %d bytes: %s", key, text,
                   SCR_MAX_FILENAME, strerror(errno));
    }
}

static void read_prefix(void)
{
    char *prefix = read_text("SCR_PREFIX", NULL, ".");
    make_absolute("SCR_PREFIX", prefix, scrl.settings.prefix);
    scrl_path_join(scrl.settings.prefix_scr, SCR_MAX_FILENAME, scrl.settings.prefix, ".scr");
    free(prefix);
}

/* The directory that belongs to this user and job below one of the bases. */
static void read_base(const char *key, const char *user, const char *job, char *out)
{
    char *base = read_text(key, NULL, DEFAULT_BASE);
    char absolute[SCR_MAX_FILENAME];
    make_absolute(key, base, absolute);
    char *below = scrl_format("%s/scr.%s", user, job);
    scrl_path_join(out, SCR_MAX_FILENAME, absolute, below);
    free(below);
    free(base);
}

static void read_current(void)
{
    char *name = read_text("SCR_CURRENT", NULL, NULL);
    if (name) {
        if (strlen(name) >= SCR_MAX_FILENAME) {
            scrl_abort("SCR_CURRENT is longer than %d bytes", SCR_MAX_FILENAME - 1);
        }
        strcpy(scrl.settings.current, name);
    }
    free(name);
}

void scrl_settings_read(void)
{
    scrl.settings = (scrl_settings){0};
    read_numbers();
    if (!scrl.settings.enable) {
        return;
    }
    read_prefix();
    char *user = read_text("SCR_USER_NAME", "USER", NULL);
    if (!user) {
        scrl_abort("no user name: set SCR_USER_NAME or USER");
    }
    char *job = read_text("SCR_JOB_ID", "SLURM_JOBID", DEFAULT_JOB);
    read_base("SCR_CNTL_BASE", user, job, scrl.settings.control);
    read_base("SCR_CACHE_BASE", user, job, scrl.settings.cache);
    read_current();
    if (scrl.settings.global_restart) {
        scrl.settings.flush_on_restart = 1;
        scrl.settings.fetch_bypass = 1;
    }
    free(job);
    free(user);
}
