/* prep/fairbank: asks the agent before a job starts, and reports ends and changed time limits.
 *
 * Slurm calls prep_p_* with its job and node locks held, so they only write a frame and queue
 * it. apply_verdict() and scan_jobs() run in the worker thread with no lock held, and take
 * Slurm's locks as Slurm's own threads do.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#include "src/common/slurm_xlator.h"

#include <stdlib.h>
#include <string.h>

#include "slurm/slurm_errno.h"

#include "src/common/assoc_mgr.h"
#include "src/common/log.h"
#include "src/common/run_in_daemon.h"
#include "src/common/xstring.h"
#include "src/slurmctld/locks.h"
#include "src/slurmctld/slurmctld.h"

#include "../plugin.h"
#include "agent_client.h"
#include "job_cache.h"
#include "versions.h"

FAIRBANK_PLUGIN("prep/fairbank", "asks the allocation bank before a job starts");

#define COMMENT_PREFIX "Fairbank: "	/* of our admin comments */
#define CRED_EXPIRE 120			/* seconds: Slurm's default, and its minimum */
#define CRED_EXPIRE_MIN 5
#define REQUEUE_SECONDS 3		/* from a requeue to the next start */

/* Weak, because slurmd loads this library too and does not have these variables. */
extern list_t *job_list __attribute__((weak));
extern list_t *part_list __attribute__((weak));
extern time_t last_job_update __attribute__((weak));

static prep_callbacks_t callbacks;

/* ---------------------------------------------------------------- reports of a job */

static void write_qos(frame_t *frame, const job_record_t *job)
{
	assoc_mgr_lock_t qos = { .qos = READ_LOCK };

	assoc_mgr_lock(&qos);
	if (job->qos_ptr)
		frame_text(frame, "qos", job->qos_ptr->name);
	assoc_mgr_unlock(&qos);
}

static void write_job(frame_t *frame, const job_record_t *job, const run_t *run, uint64_t number)
{
	frame_number(frame, "number", (int64_t) number);
	frame_text(frame, "cluster", slurm_conf.cluster_name);
	frame_number(frame, "job", run->job_id);
	frame_number(frame, "submitted", run->submitted);
	frame_number(frame, "restart", run->restart);
	frame_number(frame, "uid", job->user_id);
	frame_number(frame, "gid", job->group_id);
	frame_text(frame, "account", job->account);
	frame_text(frame, "partition",
		   job->part_ptr ? job->part_ptr->name : job->partition);
	write_qos(frame, job);
	frame_text(frame, "tres", job->tres_fmt_alloc_str);
	frame_free_text(frame, "name", job->name);
	frame_double(frame, "billing", job->billable_tres);
	if (job->time_limit != INFINITE && job->time_limit != NO_VAL)
		frame_number(frame, "limit", (int64_t) job->time_limit * 60);
	frame_number(frame, "start", job->start_time);
	if (job->resize_time)
		frame_number(frame, "resized", job->resize_time);
	frame_number(frame, "suspended", job->tot_sus_time);
	frame_number(frame, "batch", job->batch_flag ? 1 : 0);
	if (job->array_job_id) {
		frame_number(frame, "array", job->array_job_id);
		frame_number(frame, "task", job->array_task_id);
	}
	if (job->het_job_id) {
		frame_number(frame, "het", job->het_job_id);
		frame_number(frame, "component", job->het_job_offset);
	}
}

/* Return the seconds that a job ran without those in which it was suspended, also for a job that
 * ended while it was suspended. */
static int64_t elapsed_seconds(const job_record_t *job)
{
	int64_t seconds = job->end_time - job->start_time;

	if (job->suspend_time)
		seconds = job->pre_sus_time + (job->end_time - job->suspend_time);
	return seconds > 0 && job->start_time ? seconds : 0;
}

static void report(const job_record_t *job, const run_t *run, message_kind_t kind,
		   const char *word)
{
	uint64_t number = client_next_number();
	frame_t frame;

	frame_begin(&frame, word);
	write_job(&frame, job, run, number);
	frame_end(&frame);
	client_send(kind, run, number, &frame);
}

/* Return the state as accounting records it. A job that its node did not launch in time, and
 * that may start again, is NODE_FAIL there; but slurmctld puts it back into the queue before it
 * calls us. */
static const char *final_state(const job_record_t *job)
{
	if (job->job_state & JOB_REQUEUE)
		return "REQUEUED";
	if (IS_JOB_PENDING(job))
		return "NODE_FAIL";
	return job_state_string(job->job_state & JOB_STATE_BASE);
}

static void report_end(const job_record_t *job, const run_t *run, bool begun)
{
	uint64_t number = client_next_number();
	frame_t frame;

	frame_begin(&frame, "epilog");
	write_job(&frame, job, run, number);
	frame_number(&frame, "end", job->end_time);
	frame_number(&frame, "elapsed", elapsed_seconds(job));
	frame_text(&frame, "state", final_state(job));
	frame_number(&frame, "exit", job->exit_code);
	frame_number(&frame, "begun", begun ? 1 : 0);
	frame_end(&frame);
	client_send(MESSAGE_EPILOG, run, number, &frame);
}

static run_t run_of(const job_record_t *job)
{
	return (run_t) {
		.job_id = job->job_id,
		.submitted = job->details ? job->details->submit_time : 0,
		.restart = job->restart_cnt,
	};
}

/* Return the run of an end without a cached start, such as after a restart of slurmctld. Some
 * requeues increment the restart count before they call the epilog. */
static run_t ended_run_of(const job_record_t *job)
{
	run_t run = run_of(job);

	if (run.restart && (IS_JOB_PENDING(job) || job->job_state & JOB_REQUEUE))
		run.restart--;
	return run;
}

static bool is_refused(const job_record_t *job)
{
	return !xstrncmp(job->admin_comment, COMMENT_PREFIX, strlen(COMMENT_PREFIX));
}

/* ---------------------------------------------------------------- calls of Slurm */

extern int prep_p_prolog_slurmctld(job_record_t *job, bool *async)
{
	cached_job_t *cached = job_cache_put(run_of(job));

	cached->limit = job->time_limit;
	cached->billing = job->billable_tres;
	cached->begun = false;
	*async = true;
	report(job, &cached->run, MESSAGE_PROLOG, "prolog");
	return SLURM_SUCCESS;
}

/* Not asynchronous: the end of a job is a fact, and its report is repeated until it is
 * acknowledged. */
extern int prep_p_epilog_slurmctld(job_record_t *job, bool *async)
{
	cached_job_t *cached = job_cache_get(job->job_id);
	run_t run = cached ? cached->run : ended_run_of(job);

	*async = false;
	client_withdraw(&run);
	report_end(job, &run, cached ? cached->begun : !is_refused(job));
	job_cache_remove(job->job_id);
	return SLURM_SUCCESS;
}

/* ---------------------------------------------------------------- verdicts of the agent */

static void set_comment(job_record_t *job, const verdict_t *verdict)
{
	const char *text = "the allocation bank refuses this job";

	if (*verdict->text)
		text = verdict->text;
	xfree(job->admin_comment);
	job->admin_comment = xstrdup_printf(COMMENT_PREFIX "%s", text);
}

static void let_run(job_record_t *job)
{
	cached_job_t *cached = job_cache_get(job->job_id);

	if (cached)
		cached->begun = true;
	if (is_refused(job))
		xfree(job->admin_comment);
}

static void cancel(job_record_t *job, const verdict_t *verdict)
{
	job_record_t *leader = job->het_job_id ? find_job_record(job->het_job_id) : NULL;

	set_comment(job, verdict);
	srun_user_message(job, job->admin_comment);
	if (leader && leader->het_job_list)
		het_job_signal(leader, SIGKILL, 0, 0, false);
	else
		job_signal(job, SIGKILL, 0, 0, false);
}

static void set_reason(job_record_t *job, const verdict_t *verdict)
{
	job->state_reason = WAIT_HELD;	/* only an operator may release it */
	xfree(job->state_desc);
	job->state_desc = xstrdup(*verdict->reason ? verdict->reason : "Refused_by_Fairbank");
}

typedef struct {
	const verdict_t *verdict;
	bool held;
} hold_t;

static int prepare_hold(void *record, void *argument)
{
	job_record_t *job = record;
	hold_t *hold = argument;

	set_comment(job, hold->verdict);
	/* job_requeue() refuses a job whose `requeue` is 0, as --no-requeue sets it. In slurmctld
	   of 22.05 to 26.05 the field is 0 or 1, and running jobs are tested for 0 only: bit 2
	   allows the requeue. A state file with more than 1 cannot be loaded, so finish_hold()
	   clears the bit under the same lock. It keeps what the user asked for. */
	job->details->requeue |= 2;
	return 0;
}

static int finish_hold(void *record, void *argument)
{
	job_record_t *job = record;
	hold_t *hold = argument;

	job->details->requeue &= ~2;
	if (!hold->held)
		return 0;
	job->priority = 0;
	set_reason(job, hold->verdict);
	return 0;
}

/* Until the callback a held job still has a running prolog. A scheduling pass in between takes
 * the job for one that is cleaning up and removes our reason: then squeue would not show it, and
 * the scan could not find the job to release it. */
static int repeat_reason(void *record, void *argument)
{
	job_record_t *job = record;

	if (IS_JOB_PENDING(job) && !job->priority && !job->state_desc && is_refused(job))
		set_reason(job, argument);
	return 0;
}

static void restore_reason(const run_t *run, const verdict_t *verdict)
{
	slurmctld_lock_t locks = { .conf = READ_LOCK, .job = WRITE_LOCK };
	job_record_t *job, *leader;

	lock_slurmctld(locks);
	if ((job = find_job_record(run->job_id))) {
		leader = job->het_job_id ? find_job_record(job->het_job_id) : NULL;
		if (leader && leader->het_job_list)
			list_for_each(leader->het_job_list, repeat_reason, (void *) verdict);
		else
			repeat_reason(job, (void *) verdict);
		last_job_update = time(NULL);
	}
	unlock_slurmctld(locks);
}

/* Requeue the job and hold it under one lock, so that it cannot start in between. Return false
 * for an interactive job, which cannot wait in a queue. */
static bool hold_job(job_record_t *job, const verdict_t *verdict)
{
	job_record_t *leader = job->het_job_id ? find_job_record(job->het_job_id) : NULL;
	list_t *parts = leader ? leader->het_job_list : NULL;
	hold_t hold = { .verdict = verdict };

	if (!job->batch_flag)
		return false;
	if (parts)
		list_for_each(parts, prepare_hold, &hold);
	else
		prepare_hold(job, &hold);
	hold.held = requeue_job(parts ? leader : job, JOB_REQUEUE_HOLD) == SLURM_SUCCESS;
	if (parts)
		list_for_each(parts, finish_hold, &hold);
	else
		finish_hold(job, &hold);
	return hold.held;
}

static bool is_same_run(const job_record_t *job, const run_t *run)
{
	return job->details && job->details->submit_time == run->submitted
		&& job->restart_cnt == run->restart;
}

static void apply_verdict(const run_t *run, const verdict_t *verdict)
{
	slurmctld_lock_t locks = {
		.conf = READ_LOCK, .job = WRITE_LOCK, .node = WRITE_LOCK,
		.part = READ_LOCK, .fed = READ_LOCK,
	};
	job_record_t *job;
	bool held = false;

	lock_slurmctld(locks);
	job = find_job_record(run->job_id);
	if (job && is_same_run(job, run) && IS_JOB_CONFIGURING(job)) {
		if (verdict->action == ACTION_RUN)
			let_run(job);
		else if (verdict->action == ACTION_CANCEL || !(held = hold_job(job, verdict)))
			cancel(job, verdict);
		last_job_update = time(NULL);
	}
	unlock_slurmctld(locks);
	/* Each prolog needs this exactly once, in whatever state the job is now. */
	if (job)
		callbacks.prolog_slurmctld(0, run->job_id, false);
	if (held)
		restore_reason(run, verdict);
}

/* ---------------------------------------------------------------- scan of all jobs */

typedef struct {
	bool resend, ends;
} scan_t;

/* Report limit and resources if they have changed, or if we cannot know that. */
static void check_limit(const job_record_t *job, bool resend)
{
	cached_job_t *cached = job_cache_get(job->job_id);
	bool is_new = resend || !cached || cached->limit != job->time_limit
		|| cached->billing != job->billable_tres;

	if (!cached) {
		cached = job_cache_put(run_of(job));
		cached->begun = true;
	}
	job_cache_mark(cached);
	if (is_new && cached->begun) {
		cached->limit = job->time_limit;
		cached->billing = job->billable_tres;
		report(job, &cached->run, MESSAGE_LIMIT, "limit");
	}
}

/* Return the seconds that Slurm lets a requeued job wait, as src/common/slurm_cred.c does. */
static time_t requeue_delay(void)
{
	const char *value = xstrstr(slurm_conf.authinfo, "cred_expire=");
	int seconds = value ? atoi(value + strlen("cred_expire=")) : 0;

	return (seconds < CRED_EXPIRE_MIN ? CRED_EXPIRE : seconds) + 1;
}

/* Let a requeued job start soon. Slurm sets its begin time to the submission, which is the time of
 * the requeue, and the lifetime of a credential: slurmd must not take the next one for the revoked
 * one. A later second is enough for that. Any other begin time was set by a user. */
static void shorten_requeue_delay(job_record_t *job)
{
	time_t waits = job->details->begin_time - job->details->submit_time;
	time_t soon = job->details->submit_time + REQUEUE_SECONDS, now = time(NULL);

	/* Slurm adds a second to a submission in the same second as the one before. */
	if (waits == requeue_delay() || waits == requeue_delay() - 1)
		job->details->begin_time = soon > now ? soon : now;
}

/* Release a job that was held because the agent or the bank did not answer. */
static void release(job_record_t *job)
{
	if (job->details)
		shorten_requeue_delay(job);
	job->direct_set_prio = 0;
	set_job_prio(job);
	job->state_reason = WAIT_NO_REASON;
	xfree(job->state_desc);
	if (is_refused(job))
		xfree(job->admin_comment);
	last_job_update = time(NULL);
	info("%s: %pJ is released: agent and bank answer", plugin_type, job);
}

static int scan_job(void *record, void *argument)
{
	job_record_t *job = record;
	scan_t *scan = argument;
	run_t run;

	if (IS_JOB_CONFIGURING(job) || IS_JOB_RUNNING(job) || IS_JOB_SUSPENDED(job)) {
		if (!IS_JOB_CONFIGURING(job))
			check_limit(job, scan->resend);
		else if (job_cache_get(job->job_id))
			job_cache_mark(job_cache_get(job->job_id));
	} else if (scan->resend && IS_JOB_PENDING(job) && !job->priority
		   && !xstrcmp(job->state_desc, REASON_AGENT_DOWN)) {
		release(job);
	} else if (scan->ends && IS_JOB_FINISHED(job) && job->nodes) {
		run = run_of(job);
		report_end(job, &run, !is_refused(job));
	}
	return 0;
}

static bool scan_jobs(bool resend, bool ends)
{
	slurmctld_lock_t read = { .conf = READ_LOCK, .job = READ_LOCK, .part = READ_LOCK };
	slurmctld_lock_t write = {
		.conf = READ_LOCK, .job = WRITE_LOCK, .node = READ_LOCK, .part = READ_LOCK,
	};
	slurmctld_lock_t locks = resend ? write : read;	/* only a resend releases jobs */
	scan_t scan = { .resend = resend, .ends = ends };
	bool is_ready;

	lock_slurmctld(locks);
	/* slurmctld creates an empty list of jobs before it loads us. It creates the partitions and
	 * loads the jobs of its state file later, under one lock. */
	if ((is_ready = job_list && part_list)) {
		job_cache_start_scan();
		list_for_each(job_list, scan_job, &scan);
		job_cache_end_scan();
	}
	unlock_slurmctld(locks);
	return is_ready;
}

/* ---------------------------------------------------------------- settings, start and stop */

static bool read_setting(const char *name, const char *value, void *result)
{
	client_settings_t *settings = result;

	if (!strcmp(name, "fairbank_socket") && *value == '/'
	    && strlen(value) < sizeof(settings->socket)) {
		strcpy(settings->socket, value);
		return true;
	}
	if (!strcmp(name, "fairbank_patience"))
		return read_number(value, 10000000, &settings->patience);
	if (!strcmp(name, "fairbank_poll_interval"))
		return read_number(value, 10000000, &settings->poll_interval);
	if (!strcmp(name, "fairbank_max_messages"))
		return read_number(value, 10000000, &settings->max_messages);
	if (!strcmp(name, "fairbank_outage_policy")) {
		settings->open = !strcmp(value, "open");
		return settings->open || !strcmp(value, "closed");
	}
	return false;
}

static bool start(void)
{
	client_settings_t settings = {
		.socket = "/run/fairbank-agent/prep.sock",
		.patience = 30,
		.poll_interval = 5,
		.max_messages = 20000,
	};
	client_callbacks_t our_callbacks = {
		.apply_verdict = apply_verdict, .scan_jobs = scan_jobs, .log = write_log,
	};
	frame_t hello;

	if (!read_params(slurm_conf.prep_params, "PrEpParameters", read_setting, &settings))
		return false;
	frame_begin(&hello, "hello");
	frame_number(&hello, "version", WIRE_VERSION);
	frame_text(&hello, "slurm", SLURM_VERSION_STRING);
	frame_text(&hello, "cluster", slurm_conf.cluster_name);
	return frame_end(&hello) && client_start(&settings, &our_callbacks, &hello);
}

/* Slurm registers its callbacks once. After a reconfiguration that loads the plug-ins again it only
 * calls init(). */
extern int init(void)
{
	if (callbacks.prolog_slurmctld && !start())
		return SLURM_ERROR;
	return SLURM_SUCCESS;
}

extern void fini(void)
{
	client_stop();
}

extern void prep_p_register_callbacks(prep_callbacks_t *given)
{
	if (!given || !running_in_slurmctld())
		return;
	callbacks = *given;
	if (!start())
		fatal("%s: cannot start", plugin_type);
}

extern void prep_p_required(prep_call_type_t type, bool *required)
{
	*required = callbacks.prolog_slurmctld
		&& (type == PREP_PROLOG_SLURMCTLD || type == PREP_EPILOG_SLURMCTLD);
}

extern int prep_p_prolog(job_env_t *job_env, slurm_cred_t *cred)
{
	return SLURM_SUCCESS;
}

extern int prep_p_epilog(job_env_t *job_env, slurm_cred_t *cred)
{
	return SLURM_SUCCESS;
}
