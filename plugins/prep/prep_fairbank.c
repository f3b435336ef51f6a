/* prep/fairbank: asks the agent before a job starts, and tells it of ends and changed limits.
 *
 * Slurm calls prep_p_* with its job and node locks held: a frame is written and handed to the courier, nothing more.
 * settle() and look() run in the courier's clerk, with no lock held, and take Slurm's locks as Slurm's own threads do.
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
#include "courier.h"
#include "seen.h"
#include "versions.h"

FAIRBANK_PLUGIN("prep/fairbank", "asks the allocation bank before a job starts");

#define MARK "Fairbank: "	/* what our admin comments begin with */

/* slurmd loads this, too, and has no such variables. */
extern list_t *job_list __attribute__((weak));
extern time_t last_job_update __attribute__((weak));

static prep_callbacks_t callbacks;

/* ---------------------------------------------------------------- what is said of a job */

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
	frame_text(frame, "partition", job->part_ptr ? job->part_ptr->name : job->partition);
	write_qos(frame, job);
	frame_text(frame, "tres", job->tres_fmt_alloc_str);
	frame_free_text(frame, "name", job->name);
	frame_double(frame, "billing", job->billable_tres);
	if (job->time_limit != INFINITE && job->time_limit != NO_VAL)
		frame_number(frame, "limit", (int64_t) job->time_limit * 60);
	frame_number(frame, "start", job->start_time);
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

/* What it ran, without the time in which it was suspended; also where its end came while it was. */
static int64_t elapsed(const job_record_t *job)
{
	int64_t seconds = job->end_time - job->start_time;

	if (job->suspend_time)
		seconds = job->pre_sus_time + (job->end_time - job->suspend_time);
	return seconds > 0 && job->start_time ? seconds : 0;
}

static void tell(const job_record_t *job, const run_t *run, letter_kind_t kind, const char *word)
{
	uint64_t number = courier_number();
	frame_t frame;

	frame_begin(&frame, word);
	write_job(&frame, job, run, number);
	frame_end(&frame);
	courier_send(kind, run, number, &frame);
}

/* What accounting is told of it. A job that its node did not take in time, and that may be started again, is a node failure there; but
 * slurmctld puts it back into the queue before it calls us. */
static const char *outcome(const job_record_t *job)
{
	if (job->job_state & JOB_REQUEUE)
		return "REQUEUED";
	return IS_JOB_PENDING(job) ? "NODE_FAIL" : job_state_string(job->job_state & JOB_STATE_BASE);
}

static void tell_end(const job_record_t *job, const run_t *run, bool begun)
{
	uint64_t number = courier_number();
	frame_t frame;

	frame_begin(&frame, "epilog");
	write_job(&frame, job, run, number);
	frame_number(&frame, "end", job->end_time);
	frame_number(&frame, "elapsed", elapsed(job));
	frame_number(&frame, "suspended", job->tot_sus_time);
	frame_text(&frame, "state", outcome(job));
	frame_number(&frame, "exit", job->exit_code);
	frame_number(&frame, "begun", begun ? 1 : 0);
	frame_end(&frame);
	courier_send(LETTER_END, run, number, &frame);
}

static run_t run_of(const job_record_t *job)
{
	return (run_t) { .job_id = job->job_id, .submitted = job->details ? job->details->submit_time : 0, .restart = job->restart_cnt };
}

/* For an end of which we know no beginning, such as after a restart of slurmctld. Some requeues count before they call the epilog. */
static run_t ended_run_of(const job_record_t *job)
{
	run_t run = run_of(job);

	if (run.restart && (IS_JOB_PENDING(job) || job->job_state & JOB_REQUEUE))
		run.restart--;
	return run;
}

static bool is_refused(const job_record_t *job)
{
	return !xstrncmp(job->admin_comment, MARK, strlen(MARK));
}

/* ---------------------------------------------------------------- Slurm asks */

extern int prep_p_prolog_slurmctld(job_record_t *job, bool *async)
{
	seen_t *seen = seen_put(run_of(job));

	seen->limit = job->time_limit;
	seen->begun = false;
	*async = true;
	tell(job, &seen->run, LETTER_QUESTION, "prolog");
	return SLURM_SUCCESS;
}

/* Nobody waits for this one: the end of a job is a fact, and is told until somebody has noted it. */
extern int prep_p_epilog_slurmctld(job_record_t *job, bool *async)
{
	seen_t *seen = seen_get(job->job_id);
	run_t run = seen ? seen->run : ended_run_of(job);

	*async = false;
	courier_withdraw(&run);
	tell_end(job, &run, seen ? seen->begun : !is_refused(job));
	seen_drop(job->job_id);
	return SLURM_SUCCESS;
}

/* ---------------------------------------------------------------- the agent has answered */

static void comment_on(job_record_t *job, const verdict_t *verdict)
{
	xfree(job->admin_comment);
	job->admin_comment = xstrdup_printf(MARK "%s", *verdict->text ? verdict->text : "the allocation bank refuses this job");
}

static void let_run(job_record_t *job)
{
	seen_t *seen = seen_get(job->job_id);

	if (seen)
		seen->begun = true;
	if (is_refused(job))
		xfree(job->admin_comment);
}

static void cancel(job_record_t *job, const verdict_t *verdict)
{
	job_record_t *leader = job->het_job_id ? find_job_record(job->het_job_id) : NULL;

	comment_on(job, verdict);
	srun_user_message(job, job->admin_comment);
	if (leader && leader->het_job_list)
		het_job_signal(leader, SIGKILL, 0, 0, false);
	else
		job_signal(job, SIGKILL, 0, 0, false);
}

static void write_reason(job_record_t *job, const verdict_t *verdict)
{
	job->state_reason = WAIT_HELD;	/* so that only an operator may release it */
	xfree(job->state_desc);
	job->state_desc = xstrdup(*verdict->reason ? verdict->reason : "Refused_by_Fairbank");
}

typedef struct {
	const verdict_t *verdict;
	bool held;
} holding_t;

static int prepare_hold(void *each, void *of)
{
	job_record_t *job = each;
	holding_t *holding = of;

	comment_on(job, holding->verdict);
	job->details->requeue |= 2;	/* for a moment, also with --no-requeue */
	return 0;
}

static int finish_hold(void *each, void *of)
{
	job_record_t *job = each;
	holding_t *holding = of;

	job->details->requeue &= ~2;
	if (!holding->held)
		return 0;
	job->priority = 0;
	write_reason(job, holding->verdict);
	return 0;
}

/* Until the callback a held job still has a prolog running. A scheduler that passes by before takes that for cleaning up, which wipes our
 * reason out: nobody could read then what the job waits for, and we would not know it among those to release. */
static int repeat_reason(void *each, void *of)
{
	job_record_t *job = each;

	if (IS_JOB_PENDING(job) && !job->priority && !job->state_desc && is_refused(job))
		write_reason(job, of);
	return 0;
}

static void hold_to_reason(const run_t *run, const verdict_t *verdict)
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

/* Back into the queue, held, under one lock: nothing can start it in between. False for what cannot wait in a queue. */
static bool hold(job_record_t *job, const verdict_t *verdict)
{
	job_record_t *leader = job->het_job_id ? find_job_record(job->het_job_id) : NULL;
	list_t *parts = leader ? leader->het_job_list : NULL;
	holding_t holding = { .verdict = verdict };

	if (!job->batch_flag)
		return false;
	if (parts)
		list_for_each(parts, prepare_hold, &holding);
	else
		prepare_hold(job, &holding);
	holding.held = job_requeue(0, parts ? leader->job_id : job->job_id, NULL, false, JOB_REQUEUE_HOLD) == SLURM_SUCCESS;
	if (parts)
		list_for_each(parts, finish_hold, &holding);
	else
		finish_hold(job, &holding);
	return holding.held;
}

static bool is_same(const job_record_t *job, const run_t *run)
{
	return job->details && job->details->submit_time == run->submitted && job->restart_cnt == run->restart;
}

static void settle(const run_t *run, const verdict_t *verdict)
{
	slurmctld_lock_t locks = { .conf = READ_LOCK, .job = WRITE_LOCK, .node = WRITE_LOCK, .part = READ_LOCK, .fed = READ_LOCK };
	job_record_t *job;
	bool held = false;

	lock_slurmctld(locks);
	job = find_job_record(run->job_id);
	if (job && is_same(job, run) && IS_JOB_CONFIGURING(job)) {
		if (verdict->say == SAY_RUN)
			let_run(job);
		else if (verdict->say == SAY_CANCEL || !(held = hold(job, verdict)))
			cancel(job, verdict);
		last_job_update = time(NULL);
	}
	unlock_slurmctld(locks);
	if (job)
		callbacks.prolog_slurmctld(0, run->job_id, false);	/* each prolog wants this once, whatever became of the job */
	if (held)
		hold_to_reason(run, verdict);
}

/* ---------------------------------------------------------------- a look at all jobs */

typedef struct {
	bool afresh, ends;
} looking_t;

/* A limit is told when it has changed, and where we cannot know whether it has. */
static void watch(const job_record_t *job, bool afresh)
{
	seen_t *seen = seen_get(job->job_id);
	bool news = afresh || !seen || seen->limit != job->time_limit;

	if (!seen) {
		seen = seen_put(run_of(job));
		seen->begun = true;
	}
	seen_mark(seen);
	if (news && seen->begun) {
		seen->limit = job->time_limit;
		tell(job, &seen->run, LETTER_LIMIT, "limit");
	}
}

/* What was held because nobody answered goes on when somebody does. */
static void release(job_record_t *job)
{
	job->direct_set_prio = 0;
	set_job_prio(job);
	job->state_reason = WAIT_NO_REASON;
	xfree(job->state_desc);
	if (is_refused(job))
		xfree(job->admin_comment);
	last_job_update = time(NULL);
	info("%s: %pJ is released: the agent is back", plugin_type, job);
}

static int look_at(void *each, void *of)
{
	job_record_t *job = each;
	looking_t *looking = of;
	run_t run;

	if (IS_JOB_CONFIGURING(job) || IS_JOB_RUNNING(job) || IS_JOB_SUSPENDED(job)) {
		if (!IS_JOB_CONFIGURING(job))
			watch(job, looking->afresh);
		else if (seen_get(job->job_id))
			seen_mark(seen_get(job->job_id));
	} else if (looking->afresh && IS_JOB_PENDING(job) && !job->priority && !xstrcmp(job->state_desc, REASON_SILENCE)) {
		release(job);
	} else if (looking->ends && IS_JOB_FINISHED(job) && job->nodes) {
		run = run_of(job);
		tell_end(job, &run, !is_refused(job));
	}
	return 0;
}

static bool look(bool afresh, bool ends)
{
	slurmctld_lock_t reading = { .conf = READ_LOCK, .job = READ_LOCK, .part = READ_LOCK };
	slurmctld_lock_t writing = { .conf = READ_LOCK, .job = WRITE_LOCK, .node = READ_LOCK, .part = READ_LOCK };
	looking_t looking = { .afresh = afresh, .ends = ends };
	bool there;

	lock_slurmctld(afresh ? writing : reading);
	if ((there = job_list != NULL)) {
		seen_begin_round();
		list_for_each(job_list, look_at, &looking);
		seen_sweep();
	}
	unlock_slurmctld(afresh ? writing : reading);
	return there;
}

/* ---------------------------------------------------------------- life */

static bool read_setting(const char *name, const char *value, void *read)
{
	courier_settings_t *settings = read;

	if (!strcmp(name, "fairbank_socket") && *value == '/' && strlen(value) < sizeof(settings->socket)) {
		strcpy(settings->socket, value);
		return true;
	}
	if (!strcmp(name, "fairbank_patience"))
		return read_number(value, 10000000, &settings->patience);
	if (!strcmp(name, "fairbank_watch"))
		return read_number(value, 10000000, &settings->watch);
	if (!strcmp(name, "fairbank_letters"))
		return read_number(value, 10000000, &settings->most);
	if (!strcmp(name, "fairbank_silence")) {
		settings->open = !strcmp(value, "open");
		return settings->open || !strcmp(value, "closed");
	}
	return false;
}

static bool start(void)
{
	courier_settings_t settings = { .socket = "/run/fairbank-agent/prep.sock", .patience = 30, .watch = 5, .most = 20000 };
	courier_hooks_t hooks = { .settle = settle, .look = look, .log = note };
	frame_t hello;

	if (!read_params(slurm_conf.prep_params, "PrEpParameters", read_setting, &settings))
		return false;
	frame_begin(&hello, "hello");
	frame_number(&hello, "version", WIRE_VERSION);
	frame_text(&hello, "slurm", SLURM_VERSION_STRING);
	frame_text(&hello, "cluster", slurm_conf.cluster_name);
	return frame_end(&hello) && courier_start(&settings, &hooks, &hello);
}

/* Slurm gives the callbacks once; after a reconfiguration that unloads and loads plug-ins only this is called. */
extern int init(void)
{
	if (callbacks.prolog_slurmctld && !start())
		return SLURM_ERROR;
	return SLURM_SUCCESS;
}

extern void fini(void)
{
	courier_stop();
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
	*required = callbacks.prolog_slurmctld && (type == PREP_PROLOG_SLURMCTLD || type == PREP_EPILOG_SLURMCTLD);
}

extern int prep_p_prolog(job_env_t *job_env, slurm_cred_t *cred)
{
	return SLURM_SUCCESS;
}

extern int prep_p_epilog(job_env_t *job_env, slurm_cred_t *cred)
{
	return SLURM_SUCCESS;
}
