/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct {		/* a table with the memory that it lies in */
	table_t table;
	void *bytes;		/* NULL: none */
	size_t length;
} kept_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* for all that follows up to the next line; never held over a file */
static pthread_cond_t news;
static keeper_settings_t settings;
static bool stopping, changed;
static kept_t kept;
/* ------------------------------------------------------------------ */

static pthread_t thread;
static bool running;
static keeper_log_t *tell;					/* the thread's own, like all below */
static struct stat last;					/* the file that was read last, good or bad */
static char read_path[256];
static char trouble[400];					/* what has been told of the file, once; empty: that it is good */
static char complaint[400];					/* what is wrong with the file read last */

/* ---------------------------------------------------------------- the file */

static bool is_read(const struct stat *now, const char *path)
{
	return now->st_dev == last.st_dev && now->st_ino == last.st_ino && now->st_size == last.st_size && !strcmp(read_path, path)
		&& now->st_mtim.tv_sec == last.st_mtim.tv_sec && now->st_mtim.tv_nsec == last.st_mtim.tv_nsec;
}

static bool fill(int file, char *bytes, size_t length)
{
	for (size_t done = 0; done < length;) {
		ssize_t more = read(file, bytes + done, length - done);
		if (more < 0 && errno == EINTR)
			continue;
		if (more <= 0)
			return false;
		done += (size_t) more;
	}
	return true;
}

/* The file is read into memory of our own and not mapped itself: a mapped file that somebody shortens would end slurmctld (SIGBUS), and
 * one whose pages the system has taken back would be read under Slurm's locks. */
static const char *load(int file, const struct stat *found, kept_t *fresh)
{
	const char *wrong;

	if (!S_ISREG(found->st_mode))
		return "it is no plain file";
	if (found->st_size <= 0 || found->st_size > TABLE_MAX)
		return "it is no table of site factors";
	fresh->length = (size_t) found->st_size;
	fresh->bytes = mmap(NULL, fresh->length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fresh->bytes == MAP_FAILED) {
		fresh->bytes = NULL;
		return strerror(errno);
	}
	wrong = fill(file, fresh->bytes, fresh->length) ? table_check(fresh->bytes, fresh->length, &fresh->table) : "it cannot be read";
	if (wrong) {
		munmap(fresh->bytes, fresh->length);
		fresh->bytes = NULL;
	} else {
		mprotect(fresh->bytes, fresh->length, PROT_READ);
	}
	return wrong;
}

static void publish(kept_t fresh)
{
	kept_t old;

	pthread_mutex_lock(&lock);
	old = kept;
	kept = fresh;
	pthread_mutex_unlock(&lock);
	if (old.bytes)
		munmap(old.bytes, old.length);
}

static void open_and_load(const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	kept_t fresh = { .bytes = NULL };
	const char *wrong;

	if (file < 0 || fstat(file, &last))
		wrong = strerror(errno);
	else
		wrong = load(file, &last, &fresh);
	if (file >= 0)
		close(file);
	snprintf(complaint, sizeof(complaint), "%s", wrong ? wrong : "");
	snprintf(read_path, sizeof(read_path), "%s", path);
	publish(fresh);
}

/* ---------------------------------------------------------------- what is told of it */

static void tell_once(const char *path, const char *wrong)
{
	char text[sizeof(trouble) + sizeof(read_path) + 64];

	if (!strcmp(trouble, wrong))
		return;
	snprintf(trouble, sizeof(trouble), "%s", wrong);
	if (*wrong)
		snprintf(text, sizeof(text), "%s: %s; site factors are neutral until the agent writes it", path, wrong);
	else
		snprintf(text, sizeof(text), "%s: site factors are in use", path);
	tell(*wrong, text);
}

static void look(const char *path)
{
	struct stat found;

	if (!*path)
		return;
	if (stat(path, &found)) {
		memset(&last, 0, sizeof(last));
		snprintf(complaint, sizeof(complaint), "%s", strerror(errno));
		publish((kept_t) { .bytes = NULL });
	} else if (!is_read(&found, path)) {
		open_and_load(path);
	}
	if (!*complaint && !table_is_fresh(&kept.table, time(NULL)))	/* nobody else changes it */
		tell_once(path, "it is stale, or the clock is wrong");
	else
		tell_once(path, complaint);
}

/* ---------------------------------------------------------------- the thread */

static void wait_a_little(unsigned milliseconds)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += milliseconds / 1000;
	until.tv_nsec += (long) (milliseconds % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	while (!stopping && !changed) {
		if (pthread_cond_timedwait(&news, &lock, &until) == ETIMEDOUT)
			return;
	}
}

static void *keep(void *nothing)
{
	keeper_settings_t current;

	pthread_mutex_lock(&lock);
	while (wait_a_little(settings.look), !stopping) {
		current = settings;
		changed = false;
		pthread_mutex_unlock(&lock);
		look(current.path);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	return nothing;
}

extern bool keeper_start(const keeper_settings_t *given, keeper_log_t *log)
{
	pthread_condattr_t forward;

	settings = *given;
	tell = log;
	stopping = changed = false;
	*trouble = *complaint = *read_path = '\0';
	memset(&last, 0, sizeof(last));
	pthread_condattr_init(&forward);
	pthread_condattr_setclock(&forward, CLOCK_MONOTONIC);
	pthread_cond_init(&news, &forward);
	pthread_condattr_destroy(&forward);
	look(settings.path);
	running = !pthread_create(&thread, NULL, keep, NULL);
	return running;
}

extern void keeper_change(const keeper_settings_t *given)
{
	pthread_mutex_lock(&lock);
	settings = *given;
	changed = true;
	pthread_cond_signal(&news);
	pthread_mutex_unlock(&lock);
}

extern void keeper_stop(void)
{
	if (!running)
		return;
	pthread_mutex_lock(&lock);
	stopping = true;
	pthread_cond_signal(&news);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	running = false;
	publish((kept_t) { .bytes = NULL });
	pthread_cond_destroy(&news);
}

extern const table_t *keeper_take(void)
{
	pthread_mutex_lock(&lock);
	return kept.bytes && table_is_fresh(&kept.table, time(NULL)) ? &kept.table : NULL;
}

extern void keeper_give(void)
{
	pthread_mutex_unlock(&lock);
}
