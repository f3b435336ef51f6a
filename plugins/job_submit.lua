-- Fairbank in slurmctld (JobSubmitPlugins=lua). Beside slurm.conf; the rules are in the folder `fairbank` next to it.
-- How to install it, also beside a job_submit.lua of your own: docs/howto/submission-policy.md.

local WHEN_UNREADABLE = "admit" -- or "refuse": every job, as long as there is no policy to judge by
local FOLDER = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "/etc/slurm") .. "/fairbank"

local NONE_16, NONE_32 = 65534, 4294967294 -- what Slurm writes where nothing was given; all above is nothing too, or no end
local NO_END = 4294967295
local CODES = { -- of slurm_errno.h: what the commands print after our own lines
  account = 2045, partition = 2000, qos = 2066, gres = 2072, limit = 2051, price = 2050, reservation = 2052,
}

-- Operators and coordinators of an account may change others' jobs, by Slurm, which does not tell us which of the two somebody is.
local STAFF = "who looks after the cluster changes it as root, or is named by uid among `exempt` in slurm.toml"

local there, plugin = pcall(function() return assert(loadfile(FOLDER .. "/plugin.lua"))(FOLDER) end)

local function given(number, none)
  return type(number) == "number" and number < none and number or nil
end

local function minutes(number)
  if number == NO_END then return math.huge end
  return given(number, NONE_32)
end

local function memory_of(desc)
  local per_gpu = plugin.request.mebibytes((desc.mem_per_tres or ""):match("gpu:(%d+)"))
  if desc.min_mem_per_cpu then return { per = "cpu", mib = desc.min_mem_per_cpu } end
  if desc.min_mem_per_node then return { per = "node", mib = desc.min_mem_per_node } end
  return per_gpu and { per = "gpu", mib = per_gpu } or nil
end

local function gpus_of(desc)
  local found = {}
  for _, each in ipairs({ "tres_per_job job", "tres_per_node node", "tres_per_task task", "tres_per_socket job" }) do
    local field, per = each:match("(%S+) (%S+)")
    plugin.request.gpus(desc[field], per, found)
  end
  return found
end

-- --gres and --gpus-per-node arrive alike; sbatch alone says, in the environment of the job, which it was.
local function by_gres(desc)
  local environment = desc.script and desc.environment
  return (desc.tres_per_node or ""):find("gpu", 1, true) ~= nil and environment ~= nil and environment.SLURM_GPUS_PER_NODE == nil
end

local function new_job(desc, uid)
  return {
    uid = uid, gid = desc.group_id, account = desc.account, partition = desc.partition, qos = desc.qos, reservation = desc.reservation,
    minutes = minutes(desc.time_limit), cpus = given(desc.min_cpus, NONE_32), nodes = given(desc.min_nodes, NONE_32),
    tasks = given(desc.num_tasks, NONE_32), memory = memory_of(desc), gpus = gpus_of(desc), by_gres = by_gres(desc),
    cpus_per_gpu = tonumber((desc.cpus_per_tres or ""):match("gpu:(%d+)")), whole_nodes = desc.shared == 0,
  }
end

local function job_of_record(record)
  return {
    uid = record.user_id, gid = record.group_id, account = record.account, partition = record.partition, qos = record.qos,
    reservation = record.resv_name, minutes = minutes(record.time_limit), cpus = given(record.min_cpus, NONE_32),
    nodes = given(record.min_nodes, NONE_32), memory = memory_of(record), gpus = gpus_of(record),
    cpus_per_gpu = tonumber((record.cpus_per_tres or ""):match("gpu:(%d+)")),
  }
end

-- The job as its owner wants it, with what they change.
local function changed_job(desc, record)
  local job, wish, changes = job_of_record(record), new_job(desc, record.user_id), {}
  for _, what in ipairs({ "account", "partition", "qos", "reservation", "minutes", "cpus", "nodes", "memory" }) do
    if wish[what] ~= nil and wish[what] ~= job[what] then job[what], changes[what] = wish[what], true end
  end
  if wish.tasks then job.cpus, job.tasks = math.max(job.cpus or 1, wish.tasks * (given(desc.cpus_per_task, NONE_16) or 1)), wish.tasks end
  if #wish.gpus > 0 then job.gpus, changes.gpus = wish.gpus, true end
  job.changes = changes
  return job
end

local function say(verdict)
  for _, text in ipairs(verdict.errors) do slurm.log_user("%s", text) end
  for _, text in ipairs(verdict.notes) do slurm.log_user("%s", text) end
end

local function unreadable()
  if WHEN_UNREADABLE ~= "refuse" then return slurm.SUCCESS end
  slurm.log_user("jobs cannot be checked at present, so none is taken: please try again later, or tell the staff")
  return slurm.ERROR
end

local function submit(desc, uid)
  local policy = plugin.policy(slurm.log_error, os.time())
  if uid == 0 then return slurm.SUCCESS end
  if not policy then return unreadable() end
  local verdict = plugin.rules.judge(policy, new_job(desc, uid), os.time())
  say(verdict)
  if verdict.code then return CODES[verdict.code] end
  for what, value in pairs({ account = "account", partition = "partition", reservation = "reservation", qos = "qos",
    minutes = "time_limit", memory_per_cpu = "min_mem_per_cpu" }) do
    if verdict.set[what] then desc[value] = verdict.set[what] end
  end
  if verdict.minutes and not given(desc.time_min, NONE_32) then desc.time_min = verdict.minutes end
  return slurm.SUCCESS
end

local function modify(desc, record, uid)
  local policy = plugin.policy(slurm.log_error, os.time())
  if uid == 0 then return slurm.SUCCESS end
  if not policy then return unreadable() end
  if policy.exempt[uid] or uid == plugin.own("Uid") then return slurm.SUCCESS end -- slurmctld's own user is Slurm's
  local job, before = changed_job(desc, record), job_of_record(record)
  job.paid = plugin.rules.amount(policy, before)
  local verdict = plugin.rules.judge(policy, job, os.time())
  say(verdict)
  if verdict.code then
    if uid ~= record.user_id then slurm.log_user("%s", STAFF) end
    slurm.log_info("Fairbank: job %.0f not changed for uid %.0f: %s", record.job_id, uid, verdict.errors[1])
    return CODES[verdict.code]
  end
  -- Our own time_min is the limit; it follows, or Slurm would refuse a shorter limit.
  if job.changes.minutes and record.time_min == record.time_limit and not given(desc.time_min, NONE_32) then
    desc.time_min = desc.time_limit
  end
  return slurm.SUCCESS
end

-- Whatever goes wrong in here, slurmctld goes on.
local function guarded(action, ...)
  local fine, code = false, plugin
  if there then fine, code = pcall(action, ...) end
  if fine then return code end
  slurm.log_error("Fairbank: submission rules in %s failed: %s", FOLDER, tostring(code))
  return unreadable()
end

function slurm_job_submit(job_desc, part_list, submit_uid) return guarded(submit, job_desc, submit_uid) end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid) return guarded(modify, job_desc, job_rec, modify_uid) end

return slurm.SUCCESS
