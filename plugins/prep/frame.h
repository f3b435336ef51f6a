/* Frames between slurmctld and the agent: written and read here, with no Slurm and no thread.
 * The grammar stands in docs/decisions/0012-prep-wire.md.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef FAIRBANK_FRAME_H
#define FAIRBANK_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_VERSION 1
#define FRAME_HEAD 4		/* bytes of the length in front of the body */
#define FRAME_MAX 16384		/* bytes of a body that we send */
#define ANSWER_MAX 4096		/* bytes of a body that we accept */
#define FREE_MAX 512		/* bytes of a text that users choose */

typedef struct {
	size_t length;		/* of bytes, head included */
	bool full;		/* something did not fit: the frame must not be sent */
	char bytes[FRAME_HEAD + FRAME_MAX];
} frame_t;

/* Lines that are written one after the other; frame_end puts the length in front and tells whether all of it fitted. */
extern void frame_begin(frame_t *frame, const char *kind);
extern void frame_text(frame_t *frame, const char *key, const char *value);
extern void frame_free_text(frame_t *frame, const char *key, const char *value);
extern void frame_number(frame_t *frame, const char *key, int64_t value);
extern void frame_double(frame_t *frame, const char *key, double value);
extern bool frame_end(frame_t *frame);

typedef enum { SAY_RUN, SAY_HOLD, SAY_CANCEL } say_t;

typedef struct {
	say_t say;
	char reason[64];	/* one word, for state_desc */
	char text[512];		/* one line, for people */
} verdict_t;

typedef enum { ANSWER_HELLO, ANSWER_VERDICT, ANSWER_NOTED } answer_kind_t;

typedef struct {
	answer_kind_t kind;
	uint64_t number;
	unsigned version;
	verdict_t verdict;
} answer_t;

/* The length of the body behind this head. */
extern size_t frame_length(const char *head);
/* Read a body. False for anything that is not exactly an answer. */
extern bool answer_read(const char *body, size_t length, answer_t *answer);

#endif
