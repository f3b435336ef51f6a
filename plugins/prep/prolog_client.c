/* Client of the agent for a PrologSlurmctld script: it asks whether one job may start. For releases
 * of Slurm that no plug-in fits: it needs none of Slurm's headers.
 *     prolog_client SOCKET SECONDS
 * The facts of the job are in the environment of a PrologSlurmctld and in a line of squeue. Output:
 * the text for the owner. Exit status: an action of the agent, DEFER or UNDECIDED.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "agent_client.h"
#include "frame.h"

/* Beyond the actions, of which ACTION_RUN is 0. */
#define DEFER 3			/* the agent could not reach the bank: the job may start later */
#define UNDECIDED 4		/* no answer of an agent in time, or no complete facts */
#define PAUSE 0.02		/* seconds between two attempts to reach the agent */
#define NUMBER 1		/* of the only request */

/* Seconds between two lists. squeue takes most of the CPU time of a prolog (measured: 5 of 8 ms),
 * so jobs that start in quick succession share one. */
#define LIST_SECONDS 0.1

#define LINE_MAX_BYTES 2048
#define SQUEUE \
	"squeue --all --noheader --Format=JobID:16,SubmitTime:24,StartTime:24,TimeLimit:24," \
	"BatchFlag:12,tres-alloc:1000,QOS:256 "

typedef struct {
	long long submitted, start;
	char limit[64], tres[1024], qos[512];
	int batch;
} job_t;

static double now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (double) time.tv_sec + (double) time.tv_nsec / 1e9;
}

static void wait_for(double seconds)
{
	if (seconds > 0)
		nanosleep(&(struct timespec) { .tv_nsec = (long) (seconds * 1e9) }, NULL);
}

/* ---------------------------------------------------------------- facts of the job */

/* Read the rest of a file of squeue's lines up to that of the job. A line without an end was cut
 * short by a squeue that failed: its TRES may lack the billing, which would make the job free. */
static bool find_line(FILE *lines, const char *id, job_t *job)
{
	char line[LINE_MAX_BYTES], found[32];

	while (fgets(line, sizeof(line), lines)) {
		*job = (job_t) { .batch = 0 };
		if (sscanf(line, "%31s %lld %lld %63s %d %1023s %511s", found, &job->submitted,
			   &job->start, job->limit, &job->batch, job->tres, job->qos) >= 6
		    && !strcmp(found, id) && strchr(line, '\n'))
			return true;
	}
	return false;
}

/* Write the time and a line for each starting job. Return false if squeue fails. The time then
 * remains: the clients that wait for the list look for their jobs alone, all at once, as it would
 * take too long to try again one after the other. */
static bool list_starting_jobs(FILE *file)
{
	double begun = now(CLOCK_REALTIME);
	FILE *output = popen(SQUEUE "--states=CONFIGURING", "re");
	char line[LINE_MAX_BYTES];

	fprintf(file, "%.6f\n", begun);
	if (!output)
		return false;
	while (fgets(line, sizeof(line), output))
		fputs(line, file);
	return !pclose(output);
}

/* Find the job in a list of all starting jobs, which the clients that run at one moment share: one
 * squeue then serves all of them. A list counts if it was begun after this client, so it has this
 * start of the job and not an earlier one. */
static bool find_in_shared_list(const char *path, const char *id, job_t *job)
{
	double begun = now(CLOCK_REALTIME), listed;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r+");
	bool is_new, found;

	if (!file)
		return false;
	flock(fd, LOCK_EX);
	if (fscanf(file, "%lf\n", &listed) != 1 || listed > now(CLOCK_REALTIME))
		listed = 0;	/* no list yet, or one from before the clock was set back */
	is_new = listed > begun;
	if (!is_new) {
		wait_for(listed + LIST_SECONDS - now(CLOCK_REALTIME));
		rewind(file);
		is_new = !ftruncate(fd, 0) && list_starting_jobs(file);
		rewind(file);
	}
	found = is_new && find_line(file, id, job);
	fclose(file);		/* ends the lock */
	return found;
}

static bool find_alone(const char *id, job_t *job)
{
	char command[sizeof(SQUEUE) + 64];
	FILE *output;
	bool found;

	snprintf(command, sizeof(command), SQUEUE "--states=all --jobs=%.20s", id);
	output = popen(command, "re");
	found = output && find_line(output, id, job);
	if (output)
		pclose(output);
	return found;
}

static bool find_job(const char *socket, job_t *job)
{
	const char *id = getenv("SLURM_JOB_ID");
	char path[256];

	if (!id || !*id || strspn(id, "0123456789") != strlen(id))
		return false;
	setenv("TZ", "UTC", 1);
	setenv("SLURM_TIME_FORMAT", "%s", 1);
	snprintf(path, sizeof(path), "%s.starting", socket);
	return find_in_shared_list(path, id, job) || find_alone(id, job);
}

/* ---------------------------------------------------------------- request and verdict */

/* Read [DAYS-]HOURS:MINUTES:SECONDS or less of it; return -1 for no limit. */
static int64_t limit_seconds(const char *text)
{
	int64_t days = 0, seconds = 0;
	char *end;

	if (strchr(text, '-')) {
		days = strtoll(text, &end, 10);
		text = end + 1;
	}
	for (;; text = end + 1) {
		seconds = seconds * 60 + strtoll(text, &end, 10);
		if (*end != ':')
			return *end || end == text ? -1 : days * 86400 + seconds;
	}
}

/* Copy the billing units, which Slurm writes among the TRES unless they are less than one. Return
 * false if these are no TRES. */
static bool read_billing(const char *tres, char *billing, size_t size)
{
	static const char key[] = "billing=";
	const char *place = strstr(tres, key);

	if (place)
		place += strlen(key);
	snprintf(billing, size, "%.*s", place ? (int) strspn(place, "0123456789") : 1,
		 place ? place : "0");
	return strstr(tres, "cpu=") && *billing;
}

/* Write a variable of the environment; return false if it is missing. */
static bool write_variable(frame_t *frame, const char *key, const char *name)
{
	const char *value = getenv(name);

	if (!value)
		return false;
	frame_text(frame, key, value);
	return true;
}

static bool write_request(frame_t *frame, const job_t *job)
{
	int64_t limit = limit_seconds(job->limit);
	char billing[32];

	if (!read_billing(job->tres, billing, sizeof(billing)))
		return false;
	frame_begin(frame, "prolog");
	frame_number(frame, "number", NUMBER);
	frame_number(frame, "submitted", job->submitted);
	frame_number(frame, "start", job->start);
	frame_number(frame, "batch", job->batch ? 1 : 0);	/* 2 after a failed node */
	if (limit >= 0)
		frame_number(frame, "limit", limit);
	frame_text(frame, "tres", job->tres);
	frame_text(frame, "billing", billing);
	if (*job->qos)
		frame_text(frame, "qos", job->qos);
	if (!write_variable(frame, "restart", "SLURM_JOB_RESTART_COUNT"))
		frame_number(frame, "restart", 0);
	if (write_variable(frame, "array", "SLURM_ARRAY_JOB_ID"))
		write_variable(frame, "task", "SLURM_ARRAY_TASK_ID");
	write_variable(frame, "account", "SLURM_JOB_ACCOUNT");
	write_variable(frame, "partition", "SLURM_JOB_PARTITION");
	return write_variable(frame, "cluster", "SLURM_CLUSTER_NAME")
		&& write_variable(frame, "job", "SLURM_JOB_ID")
		&& write_variable(frame, "uid", "SLURM_JOB_UID")
		&& write_variable(frame, "gid", "SLURM_JOB_GID") && frame_end(frame);
}

/* Let every wait on the connection end after `seconds`. */
static void limit_waits(int fd, double seconds)
{
	long milliseconds = seconds > 0 ? (long) (seconds * 1e3) + 1 : 1;
	struct timeval wait = {
		.tv_sec = milliseconds / 1000,
		.tv_usec = milliseconds % 1000 * 1000,
	};

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
}

/* Read the address of a socket. Return false for a path that is too long for one: cut short, it
 * would be another's. */
static bool read_address(const char *path, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un) { .sun_family = AF_UNIX };
	return (size_t) snprintf(address->sun_path, sizeof(address->sun_path), "%s", path)
		< sizeof(address->sun_path);
}

/* Return a connection, or -1 after `seconds`. */
static int connect_agent(const struct sockaddr_un *address, double seconds)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	limit_waits(fd, seconds);
	if (!connect(fd, (const struct sockaddr *) address, sizeof(*address)))
		return fd;
	close(fd);
	return -1;
}

static bool send_frame(int fd, const frame_t *frame)
{
	size_t sent = 0;

	while (sent < frame->length) {
		ssize_t some = send(fd, frame->bytes + sent, frame->length - sent, MSG_NOSIGNAL);
		if (some <= 0)
			return false;
		sent += (size_t) some;
	}
	return true;
}

static bool receive_answer(int fd, answer_t *answer)
{
	char head[FRAME_HEAD], body[ANSWER_MAX];
	size_t length;

	if (recv(fd, head, sizeof(head), MSG_WAITALL) != sizeof(head))
		return false;
	length = frame_length(head);
	return length <= sizeof(body) && recv(fd, body, length, MSG_WAITALL) == (ssize_t) length
		&& answer_read(body, length, answer);
}

static bool request_verdict(
	int fd, const frame_t *hello, const frame_t *request, double end, answer_t *answer
)
{
	if (!send_frame(fd, hello) || !receive_answer(fd, answer)
			|| answer->kind != ANSWER_HELLO || answer->version != WIRE_VERSION)
		return false;
	limit_waits(fd, end - now(CLOCK_MONOTONIC));
	return send_frame(fd, request) && receive_answer(fd, answer)
		&& answer->kind == ANSWER_VERDICT && answer->number == NUMBER;
}

static int status_of(const verdict_t *verdict)
{
	if (verdict->action == ACTION_HOLD && !strcmp(verdict->reason, REASON_AGENT_DOWN))
		return DEFER;
	return (int) verdict->action;
}

/* Read a number of seconds from 0 to 10,000,000, such as 30 or 0.5. */
static bool read_seconds(const char *word, double *seconds)
{
	char *rest;

	*seconds = strtod(word, &rest);
	return *word >= '0' && *word <= '9' && !*rest && *seconds <= 1e7;
}

int main(int count, char **words)
{
	job_t job;
	frame_t hello, request;
	answer_t answer;
	struct sockaddr_un address;
	double end;

	if (count != 3) {
		fprintf(stderr, "usage: prolog_client SOCKET SECONDS\n");
		return UNDECIDED;
	}
	if (!read_address(words[1], &address)) {
		fprintf(stderr, "prolog_client: %s is too long for a socket: at most %zu bytes\n",
			words[1], sizeof(address.sun_path) - 1);
		return UNDECIDED;
	}
	if (!read_seconds(words[2], &end)) {
		fprintf(stderr, "prolog_client: '%s' is not a number of seconds, such as 30\n",
			words[2]);
		return UNDECIDED;
	}
	end += now(CLOCK_MONOTONIC);
	if (!find_job(words[1], &job) || !write_request(&request, &job)) {
		fprintf(stderr, "prolog_client: facts of the job are missing\n");
		return UNDECIDED;
	}
	frame_begin(&hello, "hello");
	frame_number(&hello, "version", WIRE_VERSION);
	frame_text(&hello, "slurm", "prolog");
	write_variable(&hello, "cluster", "SLURM_CLUSTER_NAME");
	frame_end(&hello);
	for (double left; (left = end - now(CLOCK_MONOTONIC)) > 0;) {
		int fd = connect_agent(&address, left);
		bool done = fd >= 0 && request_verdict(fd, &hello, &request, end, &answer);

		if (fd >= 0)
			close(fd);
		if (done) {
			puts(answer.verdict.text);
			return status_of(&answer.verdict);
		}
		wait_for(PAUSE);
	}
	fprintf(stderr, "prolog_client: no agent answers at %s\n", words[1]);
	return UNDECIDED;
}
