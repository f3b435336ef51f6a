/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "agent_client.h"

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

#include "worker.h"

#define BUCKETS 4096
#define OUT_SIZE (256 * 1024)
#define FIRST_PAUSE_MS 100	/* before the second try to connect; it doubles each time */
#define LONGEST_PAUSE_MS 2000
#define HELLO_MS 5000		/* that an agent may take to say hello */
#define EXPIRY_MS 250		/* between two checks for requests that have waited too long */

typedef struct message {
	struct message *previous, *next;	/* in the order of their numbers */
	struct message *previous_prolog, *next_prolog;	/* other prolog requests */
	struct message *next_in_bucket;
	message_kind_t kind;
	run_t run;
	uint64_t number;
	int64_t deadline;		/* of a prolog request, in monotonic milliseconds */
	size_t length;
	char bytes[];
} message_t;

static client_settings_t settings;
static client_callbacks_t callbacks;
static frame_t hello;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* guards all up to the next line */
static message_t *first, *last, *unsent, *buckets[BUCKETS];
/* Prolog requests have a list of their own: they are few, while ends may wait by the thousand. */
static message_t *first_prolog, *last_prolog;
static unsigned message_count;
static uint64_t last_number;
static bool stopping;
static unsigned long dropped_count;
/* ------------------------------------------------------------------ */

static pthread_t thread;
static bool running, worker_abandoned;
static int wakeup_fd = -1;

static int connection = -1;		/* this and all below: for the thread only */
static bool greeted;
static int64_t next_try, hello_deadline, next_expiry;
static int pause_ms = FIRST_PAUSE_MS;
static bool absence_logged;
static char out[OUT_SIZE], in[FRAME_HEAD + ANSWER_MAX];
static size_t out_begin, out_end, in_length;

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void write_log(bool is_error, const char *format, ...)
{
	char text[400];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	callbacks.log(is_error, text);
}

static void wake_thread(void)
{
	uint64_t one = 1;

	if (write(wakeup_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		write_log(true, "cannot wake the agent client: %s", strerror(errno));
}

/* ---------------------------------------------------------------- messages; all under the lock */

static message_t **slot_of(uint64_t number)
{
	message_t **slot = &buckets[number % BUCKETS];

	while (*slot && (*slot)->number != number)
		slot = &(*slot)->next_in_bucket;
	return slot;
}

static void append_prolog(message_t *message)
{
	message->previous_prolog = last_prolog;
	message->next_prolog = NULL;
	*(last_prolog ? &last_prolog->next_prolog : &first_prolog) = message;
	last_prolog = message;
}

static void unlink_prolog(message_t *message)
{
	message_t *previous = message->previous_prolog, *next = message->next_prolog;

	*(previous ? &previous->next_prolog : &first_prolog) = next;
	*(next ? &next->previous_prolog : &last_prolog) = previous;
}

static void append_message(message_t *message)
{
	message_t **slot = slot_of(message->number);

	message->next_in_bucket = NULL;
	*slot = message;
	message->previous = last;
	message->next = NULL;
	*(last ? &last->next : &first) = message;
	last = message;
	if (!unsent)
		unsent = message;
	if (message->kind == MESSAGE_PROLOG)
		append_prolog(message);
	message_count++;
}

static void delete_message(message_t *message)
{
	message_t **slot = slot_of(message->number);

	*slot = message->next_in_bucket;
	*(message->previous ? &message->previous->next : &first) = message->next;
	*(message->next ? &message->next->previous : &last) = message->previous;
	if (unsent == message)
		unsent = message->next;
	if (message->kind == MESSAGE_PROLOG)
		unlink_prolog(message);
	message_count--;
	free(message);
}

static verdict_t outage_verdict(void)
{
	verdict_t verdict = {
		.action = settings.open ? ACTION_RUN : ACTION_HOLD,
		.reason = REASON_AGENT_DOWN,
	};

	snprintf(verdict.text, sizeof(verdict.text), "%s",
		 "Fairbank's agent does not answer; a batch job starts when it is back, "
		 "an interactive one must be submitted again");
	return verdict;
}

/* Decide prolog requests that have waited too long. */
static void expire(int64_t now)
{
	verdict_t verdict = outage_verdict();
	message_t *next;
	unsigned count = 0;

	if (now < next_expiry)
		return;
	next_expiry = now + EXPIRY_MS;
	for (message_t *message = first_prolog; message; message = next) {
		next = message->next_prolog;
		if (message->deadline <= now) {
			worker_add_verdict(&message->run, &verdict);
			delete_message(message);
			count++;
		}
	}
	if (count)
		write_log(true, "no answer within %u s to %u prolog request(s): jobs %s",
			  settings.patience, count,
			  settings.open ? "run" : "are held, interactive ones are cancelled");
}

extern uint64_t client_next_number(void)
{
	uint64_t number;

	pthread_mutex_lock(&lock);
	number = ++last_number;
	pthread_mutex_unlock(&lock);
	return number;
}

static message_t *new_message(message_kind_t kind, const run_t *run, uint64_t number,
			      const frame_t *frame)
{
	message_t *message = NULL;

	if (message_count < settings.max_messages && !frame->full)
		message = malloc(sizeof(*message) + frame->length);
	if (!message)
		return NULL;
	message->kind = kind;
	message->run = *run;
	message->number = number;
	message->deadline = now_ms() + (int64_t) settings.patience * 1000;
	message->length = frame->length;
	memcpy(message->bytes, frame->bytes, frame->length);
	return message;
}

extern void client_send(message_kind_t kind, const run_t *run, uint64_t number,
			const frame_t *frame)
{
	verdict_t verdict = outage_verdict();
	message_t *message;
	unsigned long dropped = 0;

	pthread_mutex_lock(&lock);
	if ((message = new_message(kind, run, number, frame))) {
		append_message(message);
	} else {
		dropped = ++dropped_count;
		if (kind == MESSAGE_EPILOG)
			worker_end_dropped();
		if (kind == MESSAGE_PROLOG)
			worker_add_verdict(run, &verdict);
	}
	pthread_mutex_unlock(&lock);
	if (message)
		wake_thread();
	else if (dropped % 1000 == 1)
		write_log(true, "message about JobId=%u dropped: it is too long, or the "
			  "queue is full "
			  "(%u messages at most, %lu dropped so far)",
			  run->job_id, settings.max_messages, dropped);
}

/* Called at every epilog, with slurmctld's locks held, so only prolog requests are searched. */
extern void client_withdraw(const run_t *run)
{
	verdict_t verdict = { .action = ACTION_RUN };

	pthread_mutex_lock(&lock);
	for (message_t *message = last_prolog, *previous; message; message = previous) {
		previous = message->previous_prolog;
		if (message->run.job_id == run->job_id) {
			worker_add_verdict(&message->run, &verdict);
			delete_message(message);
		}
	}
	pthread_mutex_unlock(&lock);
}

/* ---------------------------------------------------------------- connection; the thread only */

static void hang_up(const char *why)
{
	if (connection >= 0)
		close(connection);
	connection = -1;
	next_try = now_ms() + pause_ms;
	pause_ms = pause_ms * 2 < LONGEST_PAUSE_MS ? pause_ms * 2 : LONGEST_PAUSE_MS;
	if (!absence_logged)
		write_log(true, "no agent at %s: %s; trying again", settings.socket, why);
	absence_logged = true;
}

static void open_connection(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", settings.socket);
	connection = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (connection < 0
	    || connect(connection, (struct sockaddr *) &address, sizeof(address)) < 0) {
		hang_up(strerror(errno));
		return;
	}
	greeted = false;
	hello_deadline = now_ms() + HELLO_MS;
	in_length = 0;
	out_begin = 0;
	out_end = hello.length;
	memcpy(out, hello.bytes, hello.length);
}

/* Send everything unanswered again, except limits: the scan of all jobs reports the present
 * ones. */
static void handle_hello(void)
{
	message_t *next;

	greeted = true;
	pause_ms = FIRST_PAUSE_MS;
	absence_logged = false;
	write_log(false, "connected to the agent at %s", settings.socket);
	pthread_mutex_lock(&lock);
	for (message_t *message = first; message; message = next) {
		next = message->next;
		if (message->kind == MESSAGE_LIMIT)
			delete_message(message);
	}
	unsent = first;
	worker_resend_jobs();
	pthread_mutex_unlock(&lock);
}

/* Copy as many whole messages into the output buffer as fit. */
static void fill_output(void)
{
	if (out_begin == out_end)
		out_begin = out_end = 0;
	pthread_mutex_lock(&lock);
	for (; unsent && unsent->length <= sizeof(out) - out_end; unsent = unsent->next) {
		memcpy(out + out_end, unsent->bytes, unsent->length);
		out_end += unsent->length;
	}
	pthread_mutex_unlock(&lock);
}

static bool write_output(void)
{
	ssize_t sent = send(connection, out + out_begin, out_end - out_begin, MSG_NOSIGNAL);

	if (sent < 0)
		return errno == EAGAIN || errno == EINTR;
	out_begin += (size_t) sent;
	return true;
}

/* Return false for an answer that the protocol does not allow here. */
static bool handle_answer(const answer_t *answer)
{
	message_t *message;

	if (answer->kind == ANSWER_HELLO) {
		if (greeted || answer->version != WIRE_VERSION)
			return false;
		handle_hello();
		return true;
	}
	if (!greeted)
		return false;
	pthread_mutex_lock(&lock);
	/* There is none if it was answered before, or decided by the outage policy. */
	message = *slot_of(answer->number);
	if (message && (message->kind == MESSAGE_PROLOG) == (answer->kind == ANSWER_VERDICT)) {
		if (answer->kind == ANSWER_VERDICT)
			worker_add_verdict(&message->run, &answer->verdict);
		delete_message(message);
	}
	pthread_mutex_unlock(&lock);
	return true;
}

/* Return false at the first frame that is not an answer. */
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
		if (!answer_read(in + begin + FRAME_HEAD, length, &answer)
		    || !handle_answer(&answer))
			return false;
		begin += FRAME_HEAD + length;
	}
	in_length -= begin;
	memmove(in, in + begin, in_length);
	return true;
}

static void read_input(void)
{
	ssize_t count = recv(connection, in + in_length, sizeof(in) - in_length, 0);

	if (count == 0) {
		hang_up("it has closed the connection");
	} else if (count < 0) {
		if (errno != EAGAIN && errno != EINTR)
			hang_up(strerror(errno));
	} else {
		in_length += (size_t) count;
		if (!read_answers())
			hang_up("its answer is not of the protocol");
	}
}

static int poll_timeout_ms(int64_t now)
{
	if (connection < 0 && next_try - now < 1000)
		return next_try > now ? (int) (next_try - now) : 0;
	return 1000;
}

static void poll_once(int64_t now)
{
	struct pollfd files[2] = {
		{ .fd = wakeup_fd, .events = POLLIN },
		{ .fd = connection, .events = POLLIN },
	};
	uint64_t count;

	if (connection >= 0 && out_begin < out_end)
		files[1].events |= POLLOUT;
	if (poll(files, connection >= 0 ? 2 : 1, poll_timeout_ms(now)) < 0)
		return;
	if (files[0].revents && read(wakeup_fd, &count, sizeof(count)) < 0)
		return;
	if (connection >= 0 && files[1].revents & POLLOUT && !write_output())
		hang_up(strerror(errno));
	if (connection >= 0 && files[1].revents & (POLLIN | POLLHUP | POLLERR))
		read_input();
}

static void *run_client(void *nothing)
{
	bool is_last = false;

	while (!is_last) {
		int64_t now = now_ms();
		pthread_mutex_lock(&lock);
		is_last = stopping;
		expire(now);
		pthread_mutex_unlock(&lock);
		if (connection < 0 && now >= next_try)
			open_connection();
		else if (connection >= 0 && !greeted && now > hello_deadline)
			hang_up("it does not say hello");
		if (connection >= 0 && greeted)
			fill_output();
		if (!is_last)
			poll_once(now);
	}
	if (connection >= 0)
		close(connection);
	connection = -1;
	return nothing;
}

/* ---------------------------------------------------------------- start and stop */

static void close_wakeup_fd(void)
{
	close(wakeup_fd);
	wakeup_fd = -1;
}

static void delete_all(void)
{
	pthread_mutex_lock(&lock);
	while (first)
		delete_message(first);
	pthread_mutex_unlock(&lock);
	close_wakeup_fd();
}

static bool start_worker(void)
{
	if ((wakeup_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) < 0)
		return false;
	if (worker_start(&callbacks, settings.poll_interval))
		return true;
	close_wakeup_fd();
	return false;
}

/* An abandoned worker may serve the next client, with the messages of this one. */
static void stop_worker(void)
{
	worker_abandoned = !worker_stop();
	if (!worker_abandoned)
		delete_all();
}

extern bool client_start(const client_settings_t *given_settings,
			 const client_callbacks_t *given_callbacks, const frame_t *given_hello)
{
	bool is_resumed = worker_resume(given_settings->poll_interval);

	if (worker_abandoned && !is_resumed)
		delete_all();
	worker_abandoned = false;
	if (!is_resumed)	/* a resumed worker reads them, and they are the same */
		callbacks = *given_callbacks;
	pthread_mutex_lock(&lock);
	settings = *given_settings;
	stopping = false;
	pthread_mutex_unlock(&lock);
	hello = *given_hello;
	absence_logged = false;
	pause_ms = FIRST_PAUSE_MS;
	next_try = 0;
	if (!is_resumed && !start_worker())
		return false;
	if (pthread_create(&thread, NULL, run_client, NULL)) {
		stop_worker();
		return false;
	}
	return running = true;
}

extern void client_stop(void)
{
	if (!running)
		return;
	running = false;
	pthread_mutex_lock(&lock);
	stopping = true;
	pthread_mutex_unlock(&lock);
	wake_thread();
	pthread_join(thread, NULL);
	stop_worker();
}
