/*
 * params.h - SCR's parameters as text. A value is looked for in the environment, then in the user's
 * file (SCR_CONF_FILE, else .scrconf in the prefix directory), then among those that the program
 * set through SCR_Config. $NAME and ${NAME} in a value stand for environment variables.
 * There is no system-wide file.
 */
#ifndef SCRL_PARAMS_H
#define SCRL_PARAMS_H

/* Reads the user's file if that has not happened yet. Collective. */
void scrl_params_load(void);

/* The value with variables replaced, freed by the caller; NULL when it is not set. */
char *scrl_param(const char *key);

/* How many values the key has (a file may give a key several: CKPT=0 ..., CKPT=1 ...). */
int scrl_param_values(const char *key);

/* The value of `child` below "key=value"; as scrl_param. */
char *scrl_param_child(const char *key, const char *value, const char *child);

/*
 * Sets or (value NULL) takes back what the program set. A new SCR_PREFIX or SCR_CONF_FILE makes the
 * user's file be read again. Collective.
 */
void scrl_param_set(const char *key, const char *value);

/* Sets `child_value` (NULL: takes it back) for `child` below "key=value". */
void scrl_param_set_child(const char *key, const char *value, const char *child,
                          const char *child_value);

void scrl_params_free(void);

#endif
