/*
 * collective.h - what the ranks do together: agree, and move text between rank 0 and the others.
 * Everything here is collective over the job's communicator.
 */
#ifndef SCRL_COLLECTIVE_H
#define SCRL_COLLECTIVE_H

#include "names.h"

/* 1 on every rank if `condition` holds on all of them, else 0. */
int scrl_all(int condition);

/* Rank 0's value, on every rank. */
int scrl_from_root(int value);

/* Rank 0's text (NULL allowed), on every rank, freed by the caller. */
char *scrl_text_from_root(const char *text);

/* 1 on every rank if all ranks gave the same text (NULL is a text of its own), else 0. */
int scrl_same_text(const char *text);

/* On rank 0 the lists of all ranks, an array of one a rank; NULL elsewhere. */
scrl_names *scrl_gather_names(const scrl_names *mine);

/* The reverse: rank 0 gives an array of one list a rank, every rank gets its own. */
void scrl_scatter_names(const scrl_names *all, scrl_names *mine);

/* Frees what scrl_gather_names gave; NULL allowed. Not collective. */
void scrl_free_gathered(scrl_names *all);

#endif
