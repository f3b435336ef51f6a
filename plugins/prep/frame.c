/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "frame.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_control(unsigned char c)
{
	return c < 0x20 || c == 0x7f;
}

static void put(frame_t *frame, const char *bytes, size_t count)
{
	if (frame->full || count > sizeof(frame->bytes) - frame->length) {
		frame->full = true;
		return;
	}
	memcpy(frame->bytes + frame->length, bytes, count);
	frame->length += count;
}

static void put_line(frame_t *frame, const char *key, const char *value)
{
	put(frame, key, strlen(key));
	put(frame, "=", 1);
	put(frame, value, strlen(value));
	put(frame, "\n", 1);
}

extern void frame_begin(frame_t *frame, const char *kind)
{
	frame->length = FRAME_HEAD;
	frame->full = false;
	put(frame, kind, strlen(kind));
	put(frame, "\n", 1);
}

/* NULL is left out. */
extern void frame_text(frame_t *frame, const char *key, const char *value)
{
	char escaped[4];

	if (!value)
		return;
	put(frame, key, strlen(key));
	put(frame, "=", 1);
	for (; *value; value++) {
		if (is_control((unsigned char) *value) || *value == '%') {
			snprintf(escaped, sizeof(escaped), "%%%02X", (unsigned char) *value);
			put(frame, escaped, 3);
		} else {
			put(frame, value, 1);
		}
	}
	put(frame, "\n", 1);
}

extern void frame_number(frame_t *frame, const char *key, int64_t value)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%lld", (long long) value);
	put_line(frame, key, digits);
}

/* Write the shortest decimal that reads back as the same double. */
extern void frame_double(frame_t *frame, const char *key, double value)
{
	char digits[40];

	if (!isfinite(value))
		return;
	for (int places = 15; places <= 17; places++) {
		snprintf(digits, sizeof(digits), "%.*g", places, value);
		if (strtod(digits, NULL) == value)
			break;
	}
	put_line(frame, key, digits);
}

extern bool frame_end(frame_t *frame)
{
	uint32_t length = (uint32_t) (frame->length - FRAME_HEAD);

	for (int i = 0; i < FRAME_HEAD; i++)
		frame->bytes[i] = (char) (length >> (8 * (FRAME_HEAD - 1 - i)));
	return !frame->full;
}

extern size_t frame_length(const char *head)
{
	size_t length = 0;

	for (int i = 0; i < FRAME_HEAD; i++)
		length = length << 8 | (unsigned char) head[i];
	return length;
}

/* ---------------------------------------------------------------- reading */

/* Return the next line as a C string, in place; NULL if no line feed ends it. */
static char *next_line(char **rest, char *end)
{
	char *line = *rest, *feed = memchr(line, '\n', (size_t) (end - line));

	if (!feed || memchr(line, '\0', (size_t) (feed - line)))
		return NULL;
	*feed = '\0';
	*rest = feed + 1;
	return line;
}

static bool read_number(const char *text, uint64_t *number)
{
	*number = 0;
	if (!*text || strlen(text) > 18)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		*number = *number * 10 + (uint64_t) (*text - '0');
	}
	return true;
}

static int hexadecimal(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Return true for valid UTF-8: each leading byte has its following bytes, and no code point is
 * written longer than necessary. */
static bool is_utf8(const char *text)
{
	static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };

	while (*text) {
		unsigned char lead = (unsigned char) *text++;
		int more = lead < 0x80 ? 0
			: lead >> 5 == 6 ? 1
			: lead >> 4 == 14 ? 2
			: lead >> 3 == 30 ? 3
			: -1;
		uint32_t code = more > 0 ? lead & (0x3fu >> more) : lead;

		if (more < 0)
			return false;
		for (int i = 0; i < more; i++, text++) {
			if (((unsigned char) *text & 0xc0) != 0x80)
				return false;
			code = code << 6 | ((unsigned char) *text & 0x3f);
		}
		if (code < least[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
			return false;
	}
	return true;
}

/* Write a text that the user chooses: cut at a character. If it is not UTF-8, each byte beyond
 * ASCII becomes ?, because the agent could not decode the frame. */
extern void frame_free_text(frame_t *frame, const char *key, const char *value)
{
	char copy[FREE_MAX + 1];
	size_t length;

	if (!value)
		return;
	length = strnlen(value, FREE_MAX);
	if (value[length])
		while (length && ((unsigned char) value[length] & 0xc0) == 0x80)
			length--;
	memcpy(copy, value, length);
	copy[length] = '\0';
	if (!is_utf8(copy))
		for (char *byte = copy; *byte; byte++)
			if ((unsigned char) *byte >= 0x80)
				*byte = '?';
	frame_text(frame, key, copy);
}

/* Decode a text with %XX escapes. Return false for control characters, and if it does not fit. */
static bool read_text(const char *text, char *into, size_t size)
{
	size_t used = 0;

	while (*text) {
		int c = (unsigned char) *text++;
		if (c == '%') {
			int high = hexadecimal(text[0]), low = high < 0 ? -1 : hexadecimal(text[1]);
			if (low < 0)
				return false;
			c = high << 4 | low;
			text += 2;
		}
		if (is_control((unsigned char) c) || used + 1 >= size)
			return false;
		into[used++] = (char) c;
	}
	into[used] = '\0';
	return is_utf8(into);
}

static bool read_word(const char *text, char *into, size_t size)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-:.";

	return strspn(text, allowed) == strlen(text) && read_text(text, into, size);
}

static bool read_action(const char *text, action_t *action)
{
	static const char *const words[] = {
		[ACTION_RUN] = "run", [ACTION_HOLD] = "hold", [ACTION_CANCEL] = "cancel",
	};

	for (action_t i = ACTION_RUN; i <= ACTION_CANCEL; i++) {
		if (!strcmp(text, words[i])) {
			*action = i;
			return true;
		}
	}
	return false;
}

enum { HAS_VERSION = 1, HAS_NUMBER = 2, HAS_ACTION = 4, HAS_REASON = 8, HAS_TEXT = 16 };

/* Read one `key=value` line of an answer. Return the bit of its key, 0 for anything else. */
static int read_field(char *line, answer_t *answer)
{
	char *value = strchr(line, '=');
	verdict_t *verdict = &answer->verdict;
	uint64_t version;

	if (!value)
		return 0;
	*value++ = '\0';
	if (!strcmp(line, "version") && read_number(value, &version) && version <= UINT16_MAX) {
		answer->version = (unsigned) version;
		return HAS_VERSION;
	}
	if (!strcmp(line, "number") && read_number(value, &answer->number))
		return HAS_NUMBER;
	if (!strcmp(line, "action") && read_action(value, &verdict->action))
		return HAS_ACTION;
	if (!strcmp(line, "reason") && read_word(value, verdict->reason, sizeof(verdict->reason)))
		return HAS_REASON;
	if (!strcmp(line, "text") && read_text(value, verdict->text, sizeof(verdict->text)))
		return HAS_TEXT;
	return 0;
}

static bool is_complete(const char *kind, int fields, answer_t *answer)
{
	if (!strcmp(kind, "hello")) {
		answer->kind = ANSWER_HELLO;
		return fields == HAS_VERSION;
	}
	if (!strcmp(kind, "ack")) {
		answer->kind = ANSWER_ACK;
		return fields == HAS_NUMBER;
	}
	answer->kind = ANSWER_VERDICT;
	return !strcmp(kind, "verdict")
		&& (fields & ~(HAS_REASON | HAS_TEXT)) == (HAS_NUMBER | HAS_ACTION);
}

extern bool answer_read(const char *body, size_t length, answer_t *answer)
{
	char copy[ANSWER_MAX], *rest = copy, *kind, *line;
	int fields = 0;

	memset(answer, 0, sizeof(*answer));
	if (length > sizeof(copy))
		return false;
	memcpy(copy, body, length);
	if (!(kind = next_line(&rest, copy + length)))
		return false;
	while (rest < copy + length) {
		int field;
		if (!(line = next_line(&rest, copy + length))
		    || !(field = read_field(line, answer)) || fields & field)
			return false;
		fields |= field;
	}
	return is_complete(kind, fields, answer);
}
