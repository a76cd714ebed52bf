/* scr_crit.h - the public interface of libscr_crit and of its SCR shim.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A packed file is a checkpoint file without its uncritical bytes. It is self-contained: it expands
 * with neither map nor plan. A plan holds, per kind of checkpoint file, the rules that tell which
 * bytes are critical. Both formats are documented byte by byte in docs/format.md.
 *
 * Conventions, unless a function says otherwise:
 *  - Functions return an int status: SCR_CRIT_OK (0) or a positive scr_crit_status. On failure
 *    scr_crit_last_error() tells in words what was found and what was expected.
 *  - Output arguments are written only on SCR_CRIT_OK; NULL is allowed for those marked optional.
 *  - A file that a function writes appears under its final name complete and synced, or not at all:
 *    data go to a temporary file beside it (see scr_crit_temp_path), then fsync, then rename. A
 *    failure removes the temporary file, leaves any older file of that name, and never touches the
 *    source. A symbolic link of that name is replaced, not followed. While one process writes a
 *    target, another that wants to fails with IO, errno EBUSY.
 *  - Memory use is bounded (at most 16 MiB beside the plan, one copy of the
 *    programs it stores, and mapped tables), whatever the file's size.
 *  - Handles may be used by one thread at a time; distinct handles are independent. Error state is
 *    per thread.
 *  - Sizes and offsets are in bytes, 64 bits wide.
 *
 * The declarations between the cdef marks are also read by the Python bindings' builder: keep them
 * free of macros. Tests: tests/c/, tests/test_packed.py, tests/test_plan.py, tests/test_cdef.py.
 */
#ifndef SCR_CRIT_H
#define SCR_CRIT_H

#include <stddef.h>
#include <stdint.h>

#define SCR_CRIT_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

/* The libraries are built with hidden visibility; what is declared here is what they export. */
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* [cdef core] */

/* ---- Status and errors ---------------------------------------------------------------------- */

enum scr_crit_status {
    SCR_CRIT_OK = 0,
    SCR_CRIT_ERR_ARG = 1,      /* an argument is out of its documented range */
    SCR_CRIT_ERR_IO = 2,       /* a system call failed; see scr_crit_last_errno() */
    SCR_CRIT_ERR_NOSPACE = 3,  /* ENOSPC or EDQUOT; see scr_crit_last_errno() */
    SCR_CRIT_ERR_NOMEM = 4,    /* memory exhausted */
    SCR_CRIT_ERR_FORMAT = 5,   /* foreign, truncated or inconsistent packed file or plan */
    SCR_CRIT_ERR_CHECKSUM = 6, /* a checksum does not match the bytes it covers */
    SCR_CRIT_ERR_VERSION = 7,  /* written by a newer version of the format */
    SCR_CRIT_ERR_NOMATCH = 8,  /* no plan entry matches the file's name */
    SCR_CRIT_ERR_MISFIT = 9,   /* the file's size, guards or counts do not fit its plan entry */
    SCR_CRIT_ERR_NESTED = 10,  /* the source is already a packed file */
    SCR_CRIT_ERR_CODEC = 11,   /* the codec is unknown or was not built in */
    SCR_CRIT_ERR_NOGAIN = 12,  /* packing would not make the file smaller */
    SCR_CRIT_ERR_CHANGED = 13  /* the source changed while it was being read */
};

/* Version of the library, as "0.1.0". Returns a static string, never NULL. */
const char *scr_crit_version(void);

/* Newest packed-file and plan format versions this library reads and the ones it writes. */
uint32_t scr_crit_packed_format(void);
uint32_t scr_crit_plan_format(void);

/* Names of the codecs that are usable in this process, separated by spaces ("none blosc2-zstd").
 * Returns a static string, never NULL. */
const char *scr_crit_codecs(void);

/* What went wrong in the last failing call of this thread, in words: file, offset or key, what was
 * found, what was expected. Returns a string owned by the library, valid until the next call in
 * this thread; "" when nothing has failed. */
const char *scr_crit_last_error(void);

/* errno of the last failing call of this thread, 0 when the failure was not a system call's. */
int scr_crit_last_errno(void);

/* Byte offset, in the file at fault, of the last failure of this thread; -1 when there is none. */
int64_t scr_crit_last_offset(void);

/* Short name of a status ("checksum"). Returns a static string, never NULL. */
const char *scr_crit_status_name(int status);

/* ---- Packed files --------------------------------------------------------------------------- */

enum scr_crit_codec {
    SCR_CRIT_CODEC_NONE = 0,
    SCR_CRIT_CODEC_BLOSC2_ZSTD = 1 /* c-blosc2: byte shuffle, then zstd */
};

/* How the table of critical runs is stored; a file may use several (bits are OR'd). */
enum scr_crit_encoding {
    SCR_CRIT_ENC_PATTERN = 1, /* nested repetitions of keep and drop */
    SCR_CRIT_ENC_RUNS = 2,    /* run lengths */
    SCR_CRIT_ENC_BITMAP = 4   /* one bit per element */
};

/* How to write a packed file. Zero-initialise, then set what differs. */
typedef struct scr_crit_pack_options {
    uint32_t codec;     /* scr_crit_codec */
    uint32_t type_size; /* element size for the codec's shuffle, 1..255; 0 = taken from the plan */
} scr_crit_pack_options;

/* What stands in the uncritical bytes after expansion. The pattern is laid anew from the start of
 * every uncritical run, so that it stays aligned to elements. bytes NULL or size 0 means zeros. */
typedef struct scr_crit_fill {
    const uint8_t *bytes; /* the pattern; owned by the caller, needed only during the call */
    size_t size;          /* its length, at most 64 */
} scr_crit_fill;

/* What a packed file is, or what a pack, unpack or measurement came to. */
typedef struct scr_crit_info {
    uint64_t file_bytes;     /* size of the whole file */
    uint64_t kept_bytes;     /* critical bytes among them */
    uint64_t packed_bytes;   /* size of the packed file; 0 if none was written */
    uint64_t dropped_runs;   /* number of maximal uncritical runs */
    uint64_t table_bytes;    /* size of the table of runs in the packed file */
    uint32_t encodings;      /* scr_crit_encoding bits */
    uint32_t codec;          /* scr_crit_codec */
    uint32_t format;         /* version of the packed format */
    uint8_t plan_digest[16]; /* digest of the plan that packed it */
} scr_crit_info;

typedef struct scr_crit_plan scr_crit_plan;

/* A piece of the bytes to be packed that lies in memory. */
typedef struct scr_crit_buffer {
    const void
        *data; /* owned by the caller, needed only during the call; may be NULL if size is 0 */
    uint64_t size;
} scr_crit_buffer;

/* Tell whether a file is, or claims to be, a packed file: its header or its trailer carries the
 * format's mark. A damaged packed file still claims to be one, so that it is never taken for a
 * whole file. path     file to look at claims   out: 1 if it does, else 0 Returns SCR_CRIT_OK or
 * SCR_CRIT_ERR_IO. */
int scr_crit_is_packed(const char *path, int *claims);

/* Pack one checkpoint file by a plan entry.
 *   plan     the plan; entry: index from scr_crit_plan_match
 *   source   the whole file; never modified
 *   target   name of the packed file; may equal source, which is then replaced atomically
 *   options  optional
 *   info     optional, out
 * Permission bits and user attributes of the source are carried over; owner, access list and other
 * attributes where the source itself is replaced, else they are those of a new file in the target's
 * folder. Fails with MISFIT (also when a checksum that the file's own format keeps does not match
 * its bytes: expansion would hide that), NESTED, NOGAIN, CHANGED (the file should then go through
 * whole), or IO, NOSPACE, NOMEM, CODEC; the source is as it was. */
int scr_crit_pack(scr_crit_plan *plan, uint32_t entry, const char *source, const char *target,
                  const scr_crit_pack_options *options, scr_crit_info *info);

/* Pack bytes that lie in memory, as if the buffers, one after the other, were the source file.
 *   buffers, count   the pieces, in file order
 * The other arguments and failures as for scr_crit_pack; the packed file has mode 0666 less umask.
 */
int scr_crit_pack_buffers(scr_crit_plan *plan, uint32_t entry, const scr_crit_buffer *buffers,
                          size_t count, const char *target, const scr_crit_pack_options *options,
                          scr_crit_info *info);

/* Tell what scr_crit_pack would come to, without writing (packed_bytes is the size without codec).
 * Arguments and failures as for scr_crit_pack, NOGAIN excepted. */
int scr_crit_measure(scr_crit_plan *plan, uint32_t entry, const char *source, scr_crit_info *info);

/* Overwrite the uncritical bytes of a whole file; size and offsets stay. Checksum fields that the
 * file's own format carries over those bytes are recomputed. fill     optional, zeros by default
 *   info     optional, out
 * The file is replaced atomically, as by scr_crit_pack. Fails as scr_crit_pack does, NOGAIN and
 * CODEC excepted; the file is then as it was. */
int scr_crit_overwrite(scr_crit_plan *plan, uint32_t entry, const char *path,
                       const scr_crit_fill *fill, scr_crit_info *info);

/* Expand a packed file. Every checksum is verified before the target gets its name.
 *   source   the packed file
 *   target   name of the whole file; must not be source
 *   fill     optional, zeros by default
 *   info     optional, out
 * Permission bits and user attributes are carried over. Fails with FORMAT, CHECKSUM, VERSION,
 * CODEC, IO, NOSPACE, NOMEM, ARG; the target is then as it was. */
int scr_crit_unpack(const char *source, const char *target, const scr_crit_fill *fill,
                    scr_crit_info *info);

/* Expand a packed file into memory.
 *   data     at least size bytes, owned by the caller; undefined after a failure
 *   size     must equal file_bytes of scr_crit_inspect
 * Fails as scr_crit_unpack does. */
int scr_crit_unpack_buffer(const char *source, void *data, uint64_t size, const scr_crit_fill *fill,
                           scr_crit_info *info);

/* Read and verify header, tables and trailer of a packed file, and that its length is right. The
 * payload is not read: scr_crit_check does that. info   optional, out Fails with FORMAT, CHECKSUM,
 * VERSION, CODEC (unknown), IO, NOMEM. */
int scr_crit_inspect(const char *path, scr_crit_info *info);

/* Verify every byte of a packed file without writing anything. Where the codec is usable the
 * payload is also decompressed. info   optional, out Fails as scr_crit_inspect does. */
int scr_crit_check(const char *path, scr_crit_info *info);

/* Name of the temporary file that writing `target` uses, in the same directory and within NAME_MAX.
 * It depends on the target alone, so whoever died while writing can be cleaned up after.
 *   buffer, size   where to put the name with its terminating 0; PATH_MAX bytes always suffice
 * Returns SCR_CRIT_OK, or SCR_CRIT_ERR_ARG when it does not fit. */
int scr_crit_temp_path(const char *target, char *buffer, size_t size);

/* Copy a file as it is, atomically, with permission bits and user attributes. Fails with IO,
 * NOSPACE, NOMEM, CHANGED; an older target is then as it was. */
int scr_crit_copy(const char *source, const char *target);

/* ---- Runs ----------------------------------------------------------------------------------- */

typedef struct scr_crit_runs scr_crit_runs;

/* Walk the critical runs of a file in order of offset.
 * Open on a whole file with a plan entry (the file is read only for its size, counts and guards),
 * or on a packed file (then offsets are those of the whole file). The handle is owned by the
 * caller, who closes it; it keeps the plan in use, which must be closed later. Fail with MISFIT,
 * IO, NOMEM, ARG (plan), or as scr_crit_inspect does (packed); no handle is made then. */
int scr_crit_runs_of_plan(scr_crit_plan *plan, uint32_t entry, const char *source,
                          scr_crit_runs **runs);
int scr_crit_runs_of_packed(const char *path, scr_crit_runs **runs);

/* Fetch the next maximal critical runs.
 *   starts, stops   out: arrays of capacity elements, [start, stop) in bytes
 *   count           out: how many were written; 0 at the end
 * Fails with ARG, FORMAT, IO; the handle can then only be closed. */
int scr_crit_runs_next(scr_crit_runs *runs, uint64_t *starts, uint64_t *stops, size_t capacity,
                       size_t *count);

/* Release a handle; NULL is allowed. */
void scr_crit_runs_close(scr_crit_runs *runs);

/* Encode irregular critical runs as a plan stores them ("raw" section), by whichever of run lengths
 * and bitmap is smaller. starts, stops, count   sorted, disjoint, non-empty runs within [0, length)
 *   length                 bytes covered, at least 1
 *   buffer, capacity       where to put the program; may be NULL with capacity 0 to ask for the
 * size size                   out: bytes needed Returns SCR_CRIT_OK also when capacity is too small
 * (nothing is written then); ARG on bad runs. */
int scr_crit_encode_runs(const uint64_t *starts, const uint64_t *stops, size_t count,
                         uint64_t length, uint8_t *buffer, size_t capacity, size_t *size);

/* CRC-32C (Castagnoli) of data, continuing from `crc` (0 to begin). The checksum of both formats.
 */
uint32_t scr_crit_crc32c(uint32_t crc, const void *data, size_t size);

/* ---- Plans ---------------------------------------------------------------------------------- */

enum scr_crit_section_kind {
    SCR_CRIT_SECTION_KEEP = 0,   /* bytes kept whole */
    SCR_CRIT_SECTION_ARRAY = 1,  /* an array, given by its critical boxes */
    SCR_CRIT_SECTION_RECORD = 2, /* a repeated record, with a byte mask inside the record */
    SCR_CRIT_SECTION_RAW = 3     /* irregular runs over a fixed length */
};

/* How far a rule was shown to hold (DESIGN: evidence). */
enum scr_crit_evidence {
    SCR_CRIT_EVIDENCE_NONE = 0,     /* nothing dropped, or dropped because the user named it */
    SCR_CRIT_EVIDENCE_SINGLE = 1,   /* seen in one checkpoint */
    SCR_CRIT_EVIDENCE_OBSERVED = 2, /* seen in several checkpoints and phases */
    SCR_CRIT_EVIDENCE_PROVEN = 3    /* follows from the program's structure */
};

typedef struct scr_crit_plan_info {
    uint32_t format;    /* version of the plan format */
    uint32_t entries;   /* kinds of file */
    uint32_t facts;     /* fingerprint and provenance: key/value pairs */
    uint64_t bytes;     /* size of the plan file */
    uint8_t digest[16]; /* digest of its content; packed files carry it */
} scr_crit_plan_info;

typedef struct scr_crit_entry_info {
    const char *pattern; /* file-name glob; owned by the plan */
    uint32_t sections;
    uint32_t guards;    /* constant bytes that must be found */
    uint32_t checksums; /* fields of the file's own format, recomputed after expansion */
    uint64_t min_bytes; /* size bounds */
    uint64_t max_bytes;
} scr_crit_entry_info;

typedef struct scr_crit_section_info {
    const char *name;             /* variable or section name; owned by the plan */
    uint32_t kind;                /* scr_crit_section_kind */
    uint32_t evidence;            /* scr_crit_evidence */
    uint32_t checkpoints, phases; /* of evidence `observed`: how many were seen */
    uint32_t type_size;           /* bytes per element, 1 for bytes and records */
    uint32_t dims;                /* array: number of dimensions; else 0 */
    uint32_t boxes;               /* array: number of critical boxes */
    uint64_t unit_bytes;          /* length of one repetition where it is fixed, else 0 */
    uint64_t unit_kept;           /* critical bytes in it where fixed, else 0 */
    const char *rule; /* the rule in words, as in "u[2:-2, 2:-2, 2:-2]"; owned by the plan */
} scr_crit_section_info;

/* Read a plan file (above 64 MiB: map it) and validate all of it. Nothing in it is trusted before.
 *   plan   out: owned by the caller, closed by scr_crit_plan_close
 * Fails with IO, FORMAT, CHECKSUM, VERSION, NOMEM. */
int scr_crit_plan_open(const char *path, scr_crit_plan **plan);

/* The same from bytes in memory, which are copied.
 *   data, size   the bytes of a plan file
 * Fails with ARG, FORMAT, CHECKSUM, VERSION, NOMEM. */
int scr_crit_plan_open_memory(const void *data, size_t size, scr_crit_plan **plan);

/* Release a plan; NULL is allowed. Strings it handed out are invalid afterwards. */
void scr_crit_plan_close(scr_crit_plan *plan);

/* What the plan, one of its entries, or one of an entry's sections is.
 *   entry, section   counted from 0
 *   info             out; its strings are owned by the plan and valid until it is closed
 * Fail with ARG when there is no such entry or section, or info is NULL. */
int scr_crit_plan_describe(const scr_crit_plan *plan, scr_crit_plan_info *info);
int scr_crit_plan_entry(const scr_crit_plan *plan, uint32_t entry, scr_crit_entry_info *info);
int scr_crit_plan_section(const scr_crit_plan *plan, uint32_t entry, uint32_t section,
                          scr_crit_section_info *info);

/* A fact (fingerprint, provenance, verification), counted from 0: strings owned by the plan. Fails
 * with ARG when there is no such fact. */
int scr_crit_plan_fact(const scr_crit_plan *plan, uint32_t fact, const char **key,
                       const char **value);

/* Find the entry for a checkpoint file: the first whose pattern matches.
 *   path      path relative to the prefix, without leading "./"
 *   rank      the writing rank; -1 accepts any number where the pattern has {rank}
 *   dataset   dataset name; NULL accepts any text without '/' where the pattern has {dataset}
 *   entry     out
 *   tied      optional, out: 1 if the pattern names the rank, so that no other rank has this file
 * Returns SCR_CRIT_OK, SCR_CRIT_ERR_NOMATCH, or SCR_CRIT_ERR_ARG. Allocates nothing. */
int scr_crit_plan_match(const scr_crit_plan *plan, const char *path, int rank, const char *dataset,
                        uint32_t *entry, int *tied);

/* Match one glob as scr_crit_plan_match does ('*', '?', '[...]' stop at '/', '**' does not; {rank},
 * {rank+1}, {dataset}). Returns 1 on a match, 0 on none, -1 when the pattern is malformed. */
int scr_crit_glob(const char *pattern, const char *path, int rank, const char *dataset);

/* [end cdef] */

/* ---- The shim: file-list hooks --------------------------------------------------------------
 * These live in libscr_crit_shim, not in libscr_crit. The table knows nothing of SCR: a small file
 * of wrappers feeds it, and other frameworks with the same shape can. */

/* [cdef shim] */

/* One client of the file-list events. Any callback may be NULL. Callbacks run in the thread that
 * called the framework. For output, events reach clients in order of registration when a file is
 * routed and in reverse order when output completes, so that each client sees its own paths; for
 * restart in order of registration. */
typedef struct scr_crit_hooks {
    const char *name; /* for messages; owned by the client, valid until unregistered */
    void *context;    /* handed to every callback */

    /* The framework is initialised. */
    void (*initialized)(void *context);
    /* An output phase began. dataset: its name; flags: the framework's. */
    void (*output_started)(void *context, const char *dataset, int flags);
    /* A file was routed for output. name: as the application gave it; path: where the application
     * will write, may be replaced in place by at most size - 1 characters. Return 0, or nonzero to
     * fail the call. */
    int (*output_routed)(void *context, const char *name, char *path, size_t size);
    /* The application has closed its files; the framework has not seen them yet. valid: whether
     * this rank's part is good. Return the new value of valid. */
    int (*output_completing)(void *context, int valid);
    /* The framework has taken (status 0) or rejected the output. */
    void (*output_completed)(void *context, int status);
    /* A restart phase began. */
    void (*restart_started)(void *context, const char *dataset);
    /* A file was routed for reading; as output_routed. A client that cannot hand out right bytes
     * returns nonzero, so that the application reports an invalid restart. */
    int (*restart_routed)(void *context, const char *name, char *path, size_t size);
    /* The application has read its files; valid as it reported. */
    void (*restart_completed)(void *context, int valid);
    /* The framework is about to shut down. */
    void (*finalizing)(void *context);
} scr_crit_hooks;

/* Add a client. The structure is copied. Returns 0, or SCR_CRIT_ERR_ARG / SCR_CRIT_ERR_NOMEM. */
int scr_crit_hooks_register(const scr_crit_hooks *hooks);

/* Remove the client with this context. Returns 0, or SCR_CRIT_ERR_ARG when there is none. */
int scr_crit_hooks_unregister(void *context);

/* Path of the libscr whose functions the shim calls, or "" when none has been found. Returns a
 * string owned by the shim; on failure scr_crit_shim_libscr_error() says what was tried. */
const char *scr_crit_shim_libscr(void);
const char *scr_crit_shim_libscr_error(void);

/* Totals of this process since SCR_Init, as in the line printed at SCR_Finalize. */
typedef struct scr_crit_shim_totals {
    uint64_t packed_files, whole_files, expanded_files;
    uint64_t bytes_before, bytes_after; /* of the packed files */
    double pack_seconds, expand_seconds;
} scr_crit_shim_totals;

/* Copy the totals so far; all zero while the plugin is off. totals: out, not NULL. */
void scr_crit_shim_get_totals(scr_crit_shim_totals *totals);

/* [end cdef] */

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
