/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "courier.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clerk.h"

#define BUCKETS 4096
#define OUT_SIZE (256 * 1024)
#define FIRST_PAUSE 100		/* milliseconds before the second try to connect, doubled up to LAST_PAUSE */
#define LAST_PAUSE 2000
#define GREETING 5000		/* milliseconds that an agent may take to say hello */
#define EXPIRY 250		/* milliseconds between two looks for questions that have waited too long */

typedef struct letter {
	struct letter *before, *after;	/* in the order of their numbers */
	struct letter *question_before, *question_after;	/* of a question: the other questions, in that order */
	struct letter *same_bucket;
	letter_kind_t kind;
	run_t run;
	uint64_t number;
	int64_t deadline;		/* of a question, in milliseconds of our clock */
	size_t length;
	char bytes[];
} letter_t;

static courier_settings_t settings;
static courier_hooks_t hooks;
static frame_t hello;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* for all that follows up to the next line */
static letter_t *first, *last, *unsent, *buckets[BUCKETS];
static letter_t *first_question, *last_question;	/* those that are open: few, while ends may wait by the thousand */
static unsigned kept;
static uint64_t numbers;
static bool stopping;
static unsigned long refused;
/* ------------------------------------------------------------------ */

static pthread_t courier;
static bool running, left;					/* left: the clerk, by courier_stop */
static int bell = -1;						/* wakes the courier */

static int connection = -1;					/* the courier's own, like all below */
static bool greeted;
static int64_t next_try, greeting_until, next_expiry;
static int pause_ms = FIRST_PAUSE;
static bool told_absent;
static char out[OUT_SIZE], in[FRAME_HEAD + ANSWER_MAX];
static size_t out_begin, out_end, in_length;

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void say(bool error, const char *format, ...)
{
	char text[400];
	va_list words;

	va_start(words, format);
	vsnprintf(text, sizeof(text), format, words);
	va_end(words);
	hooks.log(error, text);
}

static void ring(void)
{
	uint64_t one = 1;

	if (write(bell, &one, sizeof(one)) < 0 && errno != EAGAIN)
		say(true, "cannot wake the courier: %s", strerror(errno));
}

/* ---------------------------------------------------------------- letters; all under the lock */

static letter_t **slot_of(uint64_t number)
{
	letter_t **slot = &buckets[number % BUCKETS];

	while (*slot && (*slot)->number != number)
		slot = &(*slot)->same_bucket;
	return slot;
}

static void append_question(letter_t *letter)
{
	letter->question_before = last_question;
	letter->question_after = NULL;
	*(last_question ? &last_question->question_after : &first_question) = letter;
	last_question = letter;
}

static void drop_question(letter_t *letter)
{
	*(letter->question_before ? &letter->question_before->question_after : &first_question) = letter->question_after;
	*(letter->question_after ? &letter->question_after->question_before : &last_question) = letter->question_before;
}

static void append(letter_t *letter)
{
	letter_t **slot = slot_of(letter->number);

	letter->same_bucket = NULL;
	*slot = letter;
	letter->before = last;
	letter->after = NULL;
	*(last ? &last->after : &first) = letter;
	last = letter;
	if (!unsent)
		unsent = letter;
	if (letter->kind == LETTER_QUESTION)
		append_question(letter);
	kept++;
}

static void drop(letter_t *letter)
{
	letter_t **slot = slot_of(letter->number);

	*slot = letter->same_bucket;
	*(letter->before ? &letter->before->after : &first) = letter->after;
	*(letter->after ? &letter->after->before : &last) = letter->before;
	if (unsent == letter)
		unsent = letter->after;
	if (letter->kind == LETTER_QUESTION)
		drop_question(letter);
	kept--;
	free(letter);
}

static verdict_t verdict_of_silence(void)
{
	verdict_t verdict = { .say = settings.open ? SAY_RUN : SAY_HOLD, .reason = REASON_SILENCE };

	snprintf(verdict.text, sizeof(verdict.text), "%s", "the allocation bank does not answer; the job starts when it is back");
	return verdict;
}

static void expire(int64_t now)
{
	verdict_t verdict = verdict_of_silence();
	letter_t *after;
	unsigned count = 0;

	if (now < next_expiry)
		return;
	next_expiry = now + EXPIRY;
	for (letter_t *letter = first_question; letter; letter = after) {
		after = letter->question_after;
		if (letter->deadline <= now) {
			clerk_settle(&letter->run, &verdict);
			drop(letter);
			count++;
		}
	}
	if (count)
		say(true, "no answer within %u s to %u question(s): %s", settings.patience, count, settings.open ? "they run" : "held");
}

extern uint64_t courier_number(void)
{
	uint64_t number;

	pthread_mutex_lock(&lock);
	number = ++numbers;
	pthread_mutex_unlock(&lock);
	return number;
}

static letter_t *new_letter(letter_kind_t kind, const run_t *run, uint64_t number, const frame_t *frame)
{
	letter_t *letter = kept < settings.most && !frame->full ? malloc(sizeof(*letter) + frame->length) : NULL;

	if (!letter)
		return NULL;
	letter->kind = kind;
	letter->run = *run;
	letter->number = number;
	letter->deadline = now_ms() + (int64_t) settings.patience * 1000;
	letter->length = frame->length;
	memcpy(letter->bytes, frame->bytes, frame->length);
	return letter;
}

extern void courier_send(letter_kind_t kind, const run_t *run, uint64_t number, const frame_t *frame)
{
	verdict_t verdict = verdict_of_silence();
	letter_t *letter;
	unsigned long losses = 0;

	pthread_mutex_lock(&lock);
	if ((letter = new_letter(kind, run, number, frame))) {
		append(letter);
	} else {
		losses = ++refused;
		if (kind == LETTER_END)
			clerk_lost_an_end();
		if (kind == LETTER_QUESTION)
			clerk_settle(run, &verdict);
	}
	pthread_mutex_unlock(&lock);
	if (letter)
		ring();
	else if (losses % 1000 == 1)
		say(true, "no room for a letter about JobId=%u (%lu so far, %u kept)", run->job_id, losses, settings.most);
}

/* At every epilog, with slurmctld's locks held: only questions are looked through. */
extern void courier_withdraw(const run_t *run)
{
	verdict_t verdict = { .say = SAY_RUN };

	pthread_mutex_lock(&lock);
	for (letter_t *letter = last_question, *before; letter; letter = before) {
		before = letter->question_before;
		if (letter->run.job_id == run->job_id) {
			clerk_settle(&letter->run, &verdict);
			drop(letter);
		}
	}
	pthread_mutex_unlock(&lock);
}

/* ---------------------------------------------------------------- the courier: the only one at the socket */

static void hang_up(const char *why)
{
	if (connection >= 0)
		close(connection);
	connection = -1;
	next_try = now_ms() + pause_ms;
	pause_ms = pause_ms * 2 < LAST_PAUSE ? pause_ms * 2 : LAST_PAUSE;
	if (!told_absent)
		say(true, "no agent at %s: %s; trying again", settings.socket, why);
	told_absent = true;
}

static void call(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", settings.socket);
	connection = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (connection < 0 || connect(connection, (struct sockaddr *) &address, sizeof(address)) < 0) {
		hang_up(strerror(errno));
		return;
	}
	greeted = false;
	greeting_until = now_ms() + GREETING;
	in_length = 0;
	out_begin = 0;
	out_end = hello.length;
	memcpy(out, hello.bytes, hello.length);
}

/* Everything unanswered goes again, but limits: a look at all jobs brings them as they are now. */
static void welcome(void)
{
	letter_t *after;

	greeted = true;
	pause_ms = FIRST_PAUSE;
	told_absent = false;
	say(false, "an agent answers at %s", settings.socket);
	pthread_mutex_lock(&lock);
	for (letter_t *letter = first; letter; letter = after) {
		after = letter->after;
		if (letter->kind == LETTER_LIMIT)
			drop(letter);
	}
	unsent = first;
	clerk_look_afresh();
	pthread_mutex_unlock(&lock);
}

/* As many whole letters as there is room for. */
static void fill(void)
{
	if (out_begin == out_end)
		out_begin = out_end = 0;
	pthread_mutex_lock(&lock);
	for (; unsent && unsent->length <= sizeof(out) - out_end; unsent = unsent->after) {
		memcpy(out + out_end, unsent->bytes, unsent->length);
		out_end += unsent->length;
	}
	pthread_mutex_unlock(&lock);
}

static bool push(void)
{
	ssize_t sent = send(connection, out + out_begin, out_end - out_begin, MSG_NOSIGNAL);

	if (sent < 0)
		return errno == EAGAIN || errno == EINTR;
	out_begin += (size_t) sent;
	return true;
}

static bool take(const answer_t *answer)
{
	letter_t *letter;

	if (answer->kind == ANSWER_HELLO) {
		if (greeted || answer->version != WIRE_VERSION)
			return false;
		welcome();
		return true;
	}
	if (!greeted)
		return false;
	pthread_mutex_lock(&lock);
	letter = *slot_of(answer->number);	/* none: answered before, or too late */
	if (letter && (letter->kind == LETTER_QUESTION) == (answer->kind == ANSWER_VERDICT)) {
		if (answer->kind == ANSWER_VERDICT)
			clerk_settle(&letter->run, &answer->verdict);
		drop(letter);
	}
	pthread_mutex_unlock(&lock);
	return true;
}

/* False at the first thing that is no answer. */
static bool read_answers(void)
{
	size_t begin = 0;
	answer_t answer;

	while (in_length - begin >= FRAME_HEAD) {
		size_t length = frame_length(in + begin);
		if (length > ANSWER_MAX)
			return false;
		if (in_length - begin < FRAME_HEAD + length)
			break;
		if (!answer_read(in + begin + FRAME_HEAD, length, &answer) || !take(&answer))
			return false;
		begin += FRAME_HEAD + length;
	}
	in_length -= begin;
	memmove(in, in + begin, in_length);
	return true;
}

static void pull(void)
{
	ssize_t got = recv(connection, in + in_length, sizeof(in) - in_length, 0);

	if (got == 0) {
		hang_up("it has hung up");
	} else if (got < 0) {
		if (errno != EAGAIN && errno != EINTR)
			hang_up(strerror(errno));
	} else {
		in_length += (size_t) got;
		if (!read_answers())
			hang_up("it does not speak as agents do");
	}
}

static int patience_of_poll(int64_t now)
{
	if (connection < 0 && next_try - now < 1000)
		return next_try > now ? (int) (next_try - now) : 0;
	return 1000;
}

static void wait_and_work(int64_t now)
{
	struct pollfd both[2] = { { .fd = bell, .events = POLLIN }, { .fd = connection, .events = POLLIN } };
	uint64_t rung;

	if (connection >= 0 && out_begin < out_end)
		both[1].events |= POLLOUT;
	if (poll(both, connection >= 0 ? 2 : 1, patience_of_poll(now)) < 0)
		return;
	if (both[0].revents && read(bell, &rung, sizeof(rung)) < 0)
		return;
	if (connection >= 0 && both[1].revents & POLLOUT && !push())
		hang_up(strerror(errno));
	if (connection >= 0 && both[1].revents & (POLLIN | POLLHUP | POLLERR))
		pull();
}

static void *carry(void *nothing)
{
	bool over = false;

	while (!over) {
		int64_t now = now_ms();
		pthread_mutex_lock(&lock);
		over = stopping;
		expire(now);
		pthread_mutex_unlock(&lock);
		if (connection < 0 && now >= next_try)
			call();
		else if (connection >= 0 && !greeted && now > greeting_until)
			hang_up("it does not say hello");
		if (connection >= 0 && greeted)
			fill();
		if (!over)
			wait_and_work(now);
	}
	if (connection >= 0)
		close(connection);
	connection = -1;
	return nothing;
}

/* ---------------------------------------------------------------- life */

static void empty(void)
{
	pthread_mutex_lock(&lock);
	while (first)
		drop(first);
	pthread_mutex_unlock(&lock);
	close(bell);
	bell = -1;
}

static bool hire(void)
{
	if ((bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) < 0)
		return false;
	if (clerk_hire(&hooks, settings.watch))
		return true;
	close(bell);
	bell = -1;
	return false;
}

/* A clerk that is left behind may go on in the next life, with the letters of this one. */
static void dismiss(void)
{
	left = !clerk_dismiss();
	if (!left)
		empty();
}

extern bool courier_start(const courier_settings_t *wanted, const courier_hooks_t *called, const frame_t *greeting)
{
	bool taken_back = clerk_take_back(wanted->watch);

	if (left && !taken_back)
		empty();
	left = false;
	if (!taken_back)
		hooks = *called;	/* else they are these already */
	pthread_mutex_lock(&lock);
	settings = *wanted;
	stopping = false;
	pthread_mutex_unlock(&lock);
	hello = *greeting;
	told_absent = false;
	pause_ms = FIRST_PAUSE;
	next_try = 0;
	if (!taken_back && !hire())
		return false;
	if (pthread_create(&courier, NULL, carry, NULL)) {
		dismiss();
		return false;
	}
	return running = true;
}

extern void courier_stop(void)
{
	if (!running)
		return;
	running = false;
	pthread_mutex_lock(&lock);
	stopping = true;
	pthread_mutex_unlock(&lock);
	ring();
	pthread_join(courier, NULL);
	dismiss();
}
