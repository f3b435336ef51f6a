/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "table_reload.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct {
	table_t table;		/* points into bytes */
	void *bytes;		/* NULL: no table */
	size_t length;
} loaded_table_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* guards all up to the next line */
static pthread_cond_t change;
static reload_settings_t settings;
static bool stopping, changed;
static loaded_table_t current;	/* written by the thread only */
/* ------------------------------------------------------------------ */

static pthread_t thread;
static bool running;
static reload_log_t *write_log;		/* this and all below are used by the thread only */
static struct stat last;		/* file that was read last, good or bad */
static char read_path[256];
static char logged_error[400];		/* last one in the log; empty: the table is in use */
static char file_error[400];		/* of the file that was read last */

/* ---------------------------------------------------------------- the file */

static bool is_read(const struct stat *now, const char *path)
{
	return !strcmp(read_path, path)
		&& now->st_dev == last.st_dev
		&& now->st_ino == last.st_ino
		&& now->st_size == last.st_size
		&& now->st_mtim.tv_sec == last.st_mtim.tv_sec
		&& now->st_mtim.tv_nsec == last.st_mtim.tv_nsec;
}

static bool read_all(int file, char *bytes, size_t length)
{
	for (size_t done = 0; done < length;) {
		ssize_t count = read(file, bytes + done, length - done);
		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return false;
		done += (size_t) count;
	}
	return true;
}

/* Read the file into memory of our own. Mapped, a file that is truncated would kill slurmctld
 * (SIGBUS), and pages that the kernel has evicted would be read under Slurm's locks. */
static const char *load(int file, const struct stat *status, loaded_table_t *loaded)
{
	const char *problem;

	if (!S_ISREG(status->st_mode))
		return "it is not a plain file";
	if (status->st_size <= 0 || status->st_size > TABLE_MAX)
		return "it is not a table of site factors";
	loaded->length = (size_t) status->st_size;
	loaded->bytes = mmap(NULL, loaded->length, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (loaded->bytes == MAP_FAILED) {
		loaded->bytes = NULL;
		return strerror(errno);
	}
	problem = "it cannot be read";
	if (read_all(file, loaded->bytes, loaded->length))
		problem = table_check(loaded->bytes, loaded->length, &loaded->table);
	if (problem) {
		munmap(loaded->bytes, loaded->length);
		loaded->bytes = NULL;
	} else {
		mprotect(loaded->bytes, loaded->length, PROT_READ);
	}
	return problem;
}

static void publish(loaded_table_t loaded)
{
	loaded_table_t old;

	pthread_mutex_lock(&lock);
	old = current;
	current = loaded;
	pthread_mutex_unlock(&lock);
	if (old.bytes)
		munmap(old.bytes, old.length);
}

static void open_and_load(const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	loaded_table_t loaded = { .bytes = NULL };
	const char *problem;

	if (file < 0 || fstat(file, &last))
		problem = strerror(errno);
	else
		problem = load(file, &last, &loaded);
	if (file >= 0)
		close(file);
	snprintf(file_error, sizeof(file_error), "%s", problem ? problem : "");
	snprintf(read_path, sizeof(read_path), "%s", path);
	publish(loaded);
}

/* ---------------------------------------------------------------- log */

/* Log the state of the file if it has changed; an empty `problem` means that the table is in
 * use. */
static void log_once(const char *path, const char *problem)
{
	char text[sizeof(logged_error) + sizeof(read_path) + 64];

	if (!strcmp(logged_error, problem))
		return;
	snprintf(logged_error, sizeof(logged_error), "%s", problem);
	if (*problem)
		snprintf(text, sizeof(text),
			 "%s: %s; site factors are 0 until the agent writes it", path, problem);
	else
		snprintf(text, sizeof(text), "%s: site factors are in use", path);
	write_log(*problem, text);
}

static void check_file(const char *path)
{
	struct stat status;

	if (!*path)
		return;
	if (stat(path, &status)) {
		memset(&last, 0, sizeof(last));
		snprintf(file_error, sizeof(file_error), "%s", strerror(errno));
		publish((loaded_table_t) { .bytes = NULL });
	} else if (!is_read(&status, path)) {
		open_and_load(path);
	}
	/* Without the lock, because only this thread changes the table. */
	if (!*file_error && !table_is_fresh(&current.table, time(NULL)))
		log_once(path, "it is stale, or the clock is wrong");
	else
		log_once(path, file_error);
}

/* ---------------------------------------------------------------- the thread */

static void wait_for_change(unsigned milliseconds)
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
		if (pthread_cond_timedwait(&change, &lock, &until) == ETIMEDOUT)
			return;
	}
}

static void *run_reload(void *nothing)
{
	reload_settings_t copy;

	pthread_mutex_lock(&lock);
	while (wait_for_change(settings.interval_ms), !stopping) {
		copy = settings;
		changed = false;
		pthread_mutex_unlock(&lock);
		check_file(copy.path);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	return nothing;
}

extern bool table_reload_start(const reload_settings_t *given, reload_log_t *log)
{
	pthread_condattr_t monotonic;

	settings = *given;
	write_log = log;
	stopping = changed = false;
	*logged_error = *file_error = *read_path = '\0';
	memset(&last, 0, sizeof(last));
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&change, &monotonic);
	pthread_condattr_destroy(&monotonic);
	check_file(settings.path);
	running = !pthread_create(&thread, NULL, run_reload, NULL);
	return running;
}

extern void table_reload_change(const reload_settings_t *given)
{
	pthread_mutex_lock(&lock);
	settings = *given;
	changed = true;
	pthread_cond_signal(&change);
	pthread_mutex_unlock(&lock);
}

extern void table_reload_stop(void)
{
	if (!running)
		return;
	pthread_mutex_lock(&lock);
	stopping = true;
	pthread_cond_signal(&change);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	running = false;
	publish((loaded_table_t) { .bytes = NULL });
	pthread_cond_destroy(&change);
}

extern const table_t *table_acquire(void)
{
	pthread_mutex_lock(&lock);
	return current.bytes && table_is_fresh(&current.table, time(NULL)) ? &current.table : NULL;
}

extern void table_release(void)
{
	pthread_mutex_unlock(&lock);
}
