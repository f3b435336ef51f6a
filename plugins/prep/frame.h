/* Frames between slurmctld and the agent. Nothing here knows Slurm or threads.
 * A frame is the length of its body (four bytes, big-endian) and the body in UTF-8: a word for its
 * kind, then lines key=value. docs/decisions/0012-prep-wire.md has the grammar.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef FAIRBANK_FRAME_H
#define FAIRBANK_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_VERSION 1
#define FRAME_HEAD 4		/* bytes of length before the body */
#define FRAME_MAX 16384		/* bytes of a body that we send */
#define ANSWER_MAX 4096		/* bytes of a body that we accept */
#define FREE_MAX 512		/* bytes of a text that the user chooses */

typedef struct {
	size_t length;		/* of `bytes`, with the head */
	bool full;		/* something did not fit: the frame must not be sent */
	char bytes[FRAME_HEAD + FRAME_MAX];
} frame_t;

/* Begin a frame, add its lines, and end it. frame_end writes the length and returns false if the
 * frame is full. */
extern void frame_begin(frame_t *frame, const char *kind);
extern void frame_text(frame_t *frame, const char *key, const char *value);
extern void frame_free_text(frame_t *frame, const char *key, const char *value);
extern void frame_number(frame_t *frame, const char *key, int64_t value);
extern void frame_double(frame_t *frame, const char *key, double value);
extern bool frame_end(frame_t *frame);

typedef enum { ACTION_RUN, ACTION_HOLD, ACTION_CANCEL } action_t;

typedef struct {
	action_t action;
	char reason[64];	/* one word for state_desc */
	char text[512];		/* one line for the owner of the job */
} verdict_t;

typedef enum { ANSWER_HELLO, ANSWER_VERDICT, ANSWER_ACK } answer_kind_t;

typedef struct {
	answer_kind_t kind;
	uint64_t number;
	unsigned version;
	verdict_t verdict;
} answer_t;

/* Return the length of the body after this head. */
extern size_t frame_length(const char *head);
/* Read a body. Return false if it is not exactly one answer. */
extern bool answer_read(const char *body, size_t length, answer_t *answer);

#endif
