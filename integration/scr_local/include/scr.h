/*
 * scr.h - the public C interface of SCR v3, as the single-node stand-in in integration/scr_local
 * offers it. A program compiled against this header also runs with a real SCR v3.1, and the other
 * way round: names, arguments, constants and return values are the same.
 *
 * Every call except SCR_Route_file, SCR_Get_version and the reading of constants is collective over
 * MPI_COMM_WORLD: all ranks make it, in the same order. Calls made in the wrong order stop the job
 * with a message; they never hang.
 */
#ifndef SCR_LOCAL_SCR_H
#define SCR_LOCAL_SCR_H

#ifdef __cplusplus
extern "C" {
#endif

/* The release of SCR whose behaviour is followed. SCR_VERSION names the stand-in. */
#define SCR_MAJOR_VERSION "3"
#define SCR_MINOR_VERSION "1"
#define SCR_PATCH_VERSION "0"
#define SCR_VERSION "v3.1.0-local"

/* What a call returns when it worked; any other value is a failure. */
#define SCR_SUCCESS (0)

/* Size of every buffer that receives a file or dataset name, its final NUL included. */
#define SCR_MAX_FILENAME 1024

/* What a dataset is for: or them together for SCR_Start_output. */
#define SCR_FLAG_NONE (0 << 0)
#define SCR_FLAG_CHECKPOINT (1 << 0) /* the job can restart from it */
#define SCR_FLAG_OUTPUT (1 << 1)     /* it must reach the prefix directory */

/*
 * Starts the library, after MPI_Init: reads the parameters, makes the control and cache directories
 * and checks the datasets that an earlier run left in the cache.
 * Returns SCR_SUCCESS, or a failure when SCR_ENABLE is 0 (every later call then fails as well).
 */
int SCR_Init(void);

/*
 * Stops the library, before MPI_Finalize. The newest checkpoint is copied to the prefix directory
 * first, when it is not there yet and SCR_FLUSH is not 0.
 */
int SCR_Finalize(void);

/*
 * Asks for or sets a parameter. "KEY" asks: the result is a copy of the value that the caller
 * frees, or NULL when it is not set. "KEY=VALUE" sets, "KEY=" takes the setting back, and
 * "KEY=VALUE SUB=X" sets a value below another; all of these return NULL and are only allowed
 * before SCR_Init. A value from the environment or from the user's file is stronger.
 */
const char *SCR_Config(const char *config);

/* SCR_Config of a string built in the way of printf. */
const char *SCR_Configf(const char *format, ...);

/*
 * Gives the path to open for the file `name` (absolute, or relative to the working directory), in
 * `file`, a buffer of SCR_MAX_FILENAME bytes. Not collective.
 * While a dataset is written: registers the file with the dataset and makes its directory. The name
 * must lie under the prefix directory, otherwise the job is stopped.
 * While a restart is read: fails when the file cannot be read.
 * At any other time: copies the name unchanged.
 */
int SCR_Route_file(const char *name, char *file);

/*
 * Sets *flag to 1 and fills `name` (SCR_MAX_FILENAME bytes, or NULL) when there is a checkpoint to
 * restart from, in the cache or, failing that, in the prefix directory. Sets *flag to 0 otherwise.
 */
int SCR_Have_restart(int *flag, char *name);

/* Opens the checkpoint that SCR_Have_restart offered; `name` as there. */
int SCR_Start_restart(char *name);

/*
 * Closes it. `valid` is 0 on a rank that could not read its files: then the call fails on every
 * rank, the checkpoint is marked as bad, and SCR_Have_restart offers the one before.
 */
int SCR_Complete_restart(int valid);

/* Sets *flag to 1 when it is time for a checkpoint. Programs are free to ignore it. */
int SCR_Need_checkpoint(int *flag);

/* SCR_Start_output with a name made by the library and SCR_FLAG_CHECKPOINT. */
int SCR_Start_checkpoint(void);

/* SCR_Complete_output for SCR_Start_checkpoint. */
int SCR_Complete_checkpoint(int valid);

/*
 * Opens a new dataset. `name` and `flags` are the same on all ranks; a NULL or empty name is
 * replaced by one made from the dataset's number.
 */
int SCR_Start_output(const char *name, int flags);

/*
 * Closes the dataset. It counts only if `valid` is 1 on every rank and every routed file can be
 * read; otherwise the call fails on every rank and the dataset is given up.
 */
int SCR_Complete_output(int valid);

/*
 * Says that the program restarted, by its own means, from the checkpoint `name` of the prefix
 * directory: numbering goes on from there. An unknown name changes nothing.
 */
int SCR_Current(const char *name);

/* Forgets the dataset in the prefix directory's index; its files stay. */
int SCR_Drop(const char *name);

/* Removes the dataset: its files in cache and prefix, directories left empty, its index entry. */
int SCR_Delete(const char *name);

/* The version, a constant string: "v3.1.0-local" for the stand-in. */
char *SCR_Get_version(void);

/* Sets *flag to 1 when the job should end soon (SCR_HALT_SECONDS before SCR_END_TIME). */
int SCR_Should_exit(int *flag);

#ifdef __cplusplus
}
#endif

#endif
