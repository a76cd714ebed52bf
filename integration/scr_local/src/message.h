/*
 * message.h - what the library says, in SCR's own form:
 *     SCR v3.1.0-local ERROR: rank 2 on host: text @ file.c:120
 * As in SCR, errors, warnings and debug lines go to stdout and the word before an abort to stderr.
 */
#ifndef SCRL_MESSAGE_H
#define SCRL_MESSAGE_H

#define scrl_err(...) scrl_report("ERROR", __FILE__, __LINE__, __VA_ARGS__)
#define scrl_warn(...) scrl_report("WARNING", __FILE__, __LINE__, __VA_ARGS__)
#define scrl_abort(...) scrl_abort_at(__FILE__, __LINE__, __VA_ARGS__)

/* Printed when SCR_DEBUG is at least `level`. */
void scrl_dbg(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Behind scrl_err and scrl_warn. */
void scrl_report(const char *kind, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Behind scrl_abort: ends the whole job through MPI_Abort. */
_Noreturn void scrl_abort_at(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
