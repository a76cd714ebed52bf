/*
 * settings.h - the parameters that the stand-in knows, as numbers and paths. The names and default
 * values are SCR's; README.md lists them.
 */
#ifndef SCRL_SETTINGS_H
#define SCRL_SETTINGS_H

#include "scr.h"

typedef struct {
    int enable;              /* SCR_ENABLE */
    int debug;               /* SCR_DEBUG */
    int cache_bypass;        /* SCR_CACHE_BYPASS: files go straight to the prefix directory */
    int cache_size;          /* SCR_CACHE_SIZE: datasets kept in the cache */
    int cache_purge;         /* SCR_CACHE_PURGE: empty the cache at start */
    int distribute;          /* SCR_DISTRIBUTE: restart from the cache */
    int fetch;               /* SCR_FETCH: restart from the prefix directory */
    int fetch_bypass;        /* SCR_FETCH_BYPASS: read there instead of copying to the cache */
    int flush;               /* SCR_FLUSH: copy every n-th checkpoint to the prefix directory */
    int flush_on_restart;    /* SCR_FLUSH_ON_RESTART */
    int global_restart;      /* SCR_GLOBAL_RESTART: restart from the prefix directory only */
    int drop_after_current;  /* SCR_DROP_AFTER_CURRENT */
    int prefix_size;         /* SCR_PREFIX_SIZE: checkpoints kept in the prefix directory */
    int prefix_purge;        /* SCR_PREFIX_PURGE */
    int checkpoint_interval; /* SCR_CHECKPOINT_INTERVAL: for SCR_Need_checkpoint */
    int checkpoint_seconds;  /* SCR_CHECKPOINT_SECONDS */
    int checkpoint_overhead; /* SCR_CHECKPOINT_OVERHEAD, percent */
    int halt_seconds;        /* SCR_HALT_SECONDS */
    char prefix[SCR_MAX_FILENAME];     /* SCR_PREFIX, default the working directory */
    char prefix_scr[SCR_MAX_FILENAME]; /* its subdirectory .scr */
    char cache[SCR_MAX_FILENAME];      /* SCR_CACHE_BASE/user/scr.job */
    char control[SCR_MAX_FILENAME];    /* SCR_CNTL_BASE/user/scr.job */
    char current[SCR_MAX_FILENAME];    /* SCR_CURRENT, or empty */
} scrl_settings;

/* Fills scrl.settings from the parameters; stops the job when a needed one is missing. Collective.
 */
void scrl_settings_read(void);

#endif
