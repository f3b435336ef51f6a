/* Test program: read answers as the plug-in does and print them, or write a frame.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"

/* Read frames from standard input and print a line for each. The copy of a body has exactly its
 * length, so that the sanitizer finds each read beyond it. */
static int check_answers(void)
{
	static const char *const actions[] = { "run", "hold", "cancel" };
	char head[FRAME_HEAD];
	answer_t answer;

	while (fread(head, 1, FRAME_HEAD, stdin) == FRAME_HEAD) {
		size_t length = frame_length(head);
		char *body = malloc(length ? length : 1);
		if (!body || fread(body, 1, length, stdin) != length)
			return 1;
		if (!answer_read(body, length, &answer))
			printf("refused\n");
		else if (answer.kind == ANSWER_HELLO)
			printf("hello %u\n", answer.version);
		else if (answer.kind == ANSWER_ACK)
			printf("ack %llu\n", (unsigned long long) answer.number);
		else
			printf("verdict %llu %s [%s] [%s]\n", (unsigned long long) answer.number,
			       actions[answer.verdict.action], answer.verdict.reason,
			       answer.verdict.text);
		free(body);
	}
	return 0;
}

/* check KIND KEY VALUE ...: write a frame of texts. A KEY that begins with # takes a number,
 * with ~ a double, with @ a free text. */
static int write_frame(int count, char **words)
{
	frame_t *frame = malloc(sizeof(*frame));

	frame_begin(frame, words[0]);
	for (int i = 1; i + 1 < count; i += 2) {
		if (*words[i] == '#')
			frame_number(frame, words[i] + 1, strtoll(words[i + 1], NULL, 10));
		else if (*words[i] == '~')
			frame_double(frame, words[i] + 1, strtod(words[i + 1], NULL));
		else if (*words[i] == '@')
			frame_free_text(frame, words[i] + 1, words[i + 1]);
		else
			frame_text(frame, words[i], words[i + 1]);
	}
	if (!frame_end(frame))
		printf("full\n");
	else
		fwrite(frame->bytes, 1, frame->length, stdout);
	free(frame);
	return 0;
}

int main(int count, char **words)
{
	return count > 1 ? write_frame(count - 1, words + 1) : check_answers();
}
