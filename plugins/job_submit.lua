-- Fairbank in slurmctld (JobSubmitPlugins=lua). This file is beside slurm.conf, and the rules are
-- in the directory `fairbank` next to it. docs/howto/submission-policy.md tells how to install it,
-- also next to a job_submit.lua of your own.

local WHEN_UNREADABLE = "admit" -- or "refuse": for all jobs while there is no policy
local FOLDER = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "/etc/slurm") .. "/fairbank"

-- Slurm's values for a field that was not given; larger values mean that too, or no limit.
local NONE_16, NONE_32 = 65534, 4294967294
local NO_LIMIT = 4294967295
local CODES = { -- of slurm_errno.h: the commands print their texts after our lines
  account = 2045, partition = 2000, qos = 2066, gres = 2072, limit = 2051, price = 2050,
  reservation = 2052,
}

-- Operators and coordinators of an account may change jobs of others. Slurm does not tell us that a
-- user is one of them.
local STAFF_HINT =
  "administrators change it as root, or are listed by uid in `exempt` of slurm.toml"

local is_loaded, plugin = pcall(function()
  return assert(loadfile(FOLDER .. "/plugin.lua"))(FOLDER)
end)

-- Return the number, or nil for one that means "not given".
local function given(number, none)
  return type(number) == "number" and number < none and number or nil
end

local function minutes_of(limit)
  if limit == NO_LIMIT then return math.huge end
  return given(limit, NONE_32)
end

local function memory_of(desc)
  if desc.min_mem_per_cpu then return { per = "cpu", mib = desc.min_mem_per_cpu } end
  if desc.min_mem_per_node then return { per = "node", mib = desc.min_mem_per_node } end
  local per_gpu = plugin.request.mebibytes((desc.mem_per_tres or ""):match("gpu:(%d+)"))
  return per_gpu and { per = "gpu", mib = per_gpu } or nil
end

local function gpus_of(desc)
  local gpus = {}
  plugin.request.add_gpus(gpus, desc.tres_per_job, "job")
  plugin.request.add_gpus(gpus, desc.tres_per_node, "node")
  plugin.request.add_gpus(gpus, desc.tres_per_task, "task")
  return plugin.request.add_gpus(gpus, desc.tres_per_socket, "job")
end

-- Return true for --gres=gpu. --gpus-per-node sets the same field; only the job's environment,
-- which sbatch passes, shows which option it was.
local function is_by_gres(desc)
  local environment = desc.script and desc.environment
  local has_gpu = #plugin.request.add_gpus({}, desc.tres_per_node, "node") > 0
  return has_gpu and environment ~= nil and environment.SLURM_GPUS_PER_NODE == nil
end

local function new_job(desc, uid)
  return {
    uid = uid, gid = desc.group_id, account = desc.account,
    default_account = desc.default_account, partition = desc.partition,
    qos = desc.qos, reservation = desc.reservation, minutes = minutes_of(desc.time_limit),
    cpus = given(desc.min_cpus, NONE_32), nodes = given(desc.min_nodes, NONE_32),
    tasks = given(desc.num_tasks, NONE_32), memory = memory_of(desc), gpus = gpus_of(desc),
    tasks_per_node = given(desc.ntasks_per_node, NONE_16), by_gres = is_by_gres(desc),
    whole_nodes = desc.shared == 0,
    cpus_per_gpu = tonumber((desc.cpus_per_tres or ""):match("gpu:(%d+)")),
  }
end

local function recorded_job(record)
  return {
    uid = record.user_id, gid = record.group_id, account = record.account,
    partition = record.partition, qos = record.qos, reservation = record.resv_name,
    minutes = minutes_of(record.time_limit), cpus = given(record.min_cpus, NONE_32),
    nodes = given(record.min_nodes, NONE_32), memory = memory_of(record), gpus = gpus_of(record),
    cpus_per_gpu = tonumber((record.cpus_per_tres or ""):match("gpu:(%d+)")),
  }
end

local CHANGEABLE = {
  "account", "partition", "qos", "reservation", "minutes", "cpus", "nodes", "memory",
}

-- Return the recorded job with the changes applied; `changes` has the names of changed fields.
local function changed_job(desc, record)
  local job, request, changes = recorded_job(record), new_job(desc, record.user_id), {}
  for _, field in ipairs(CHANGEABLE) do
    if request[field] ~= nil and request[field] ~= job[field] then
      job[field], changes[field] = request[field], true
    end
  end
  if request.tasks then
    local cpus_per_task = given(desc.cpus_per_task, NONE_16) or 1
    job.cpus = math.max(job.cpus or 1, request.tasks * cpus_per_task)
    job.tasks = request.tasks
  end
  if #request.gpus > 0 then job.gpus, changes.gpus = request.gpus, true end
  job.changes = changes
  return job
end

local function show(verdict)
  for _, message in ipairs(verdict.errors) do slurm.log_user("%s", message) end
  for _, message in ipairs(verdict.notes) do slurm.log_user("%s", message) end
end

-- Not in plugin.lua: this also decides if that file cannot be loaded.
local function result_without_policy()
  if WHEN_UNREADABLE ~= "refuse" then return slurm.SUCCESS end
  slurm.log_user("%s",
    "jobs cannot be checked now, so none is accepted: try again later, or tell the staff")
  return slurm.ERROR
end

local FIELDS = { -- of a verdict, and of a job description
  account = "account", partition = "partition", reservation = "reservation", qos = "qos",
  minutes = "time_limit", memory_per_cpu = "min_mem_per_cpu",
}

local function submit(desc, uid)
  local policy = plugin.policy(slurm.log_error, os.time())
  if uid == 0 then return slurm.SUCCESS end
  if not policy then return result_without_policy() end
  local verdict = plugin.rules.check(policy, new_job(desc, uid), os.time())
  show(verdict)
  if verdict.code then return CODES[verdict.code] end
  for field, desc_field in pairs(FIELDS) do
    if verdict.set[field] then desc[desc_field] = verdict.set[field] end
  end
  -- Without --time-min a job must not end before its limit.
  if verdict.minutes and not given(desc.time_min, NONE_32) then desc.time_min = verdict.minutes end
  return slurm.SUCCESS
end

local function modify(desc, record, uid)
  local policy = plugin.policy(slurm.log_error, os.time())
  if uid == 0 then return slurm.SUCCESS end
  if not policy then return result_without_policy() end
  -- Changes by slurmctld's own user are Slurm's.
  if policy.exempt[uid] or uid == plugin.own_id("Uid") then return slurm.SUCCESS end
  local job, before = changed_job(desc, record), recorded_job(record)
  job.paid = plugin.rules.amount(policy, before)
  local verdict = plugin.rules.check(policy, job, os.time())
  show(verdict)
  if verdict.code then
    if uid ~= record.user_id then slurm.log_user("%s", STAFF_HINT) end
    slurm.log_info("Fairbank: job %.0f not changed for uid %.0f: %s", record.job_id, uid,
      verdict.errors[1])
    return CODES[verdict.code]
  end
  -- A time_min that we have set equals the limit and must follow it: Slurm refuses a shorter limit.
  local is_ours = record.time_min == record.time_limit
  if job.changes.minutes and is_ours and not given(desc.time_min, NONE_32) then
    desc.time_min = desc.time_limit
  end
  return slurm.SUCCESS
end

-- Call a function so that no error of ours stops slurmctld.
local function call(action, ...)
  local is_ok, code = false, plugin
  if is_loaded then is_ok, code = pcall(action, ...) end
  if is_ok then return code end
  slurm.log_error("Fairbank: submission rules in %s failed: %s", FOLDER, tostring(code))
  return result_without_policy()
end

function slurm_job_submit(job_desc, part_list, submit_uid)
  return call(submit, job_desc, submit_uid)
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return call(modify, job_desc, job_rec, modify_uid)
end

return slurm.SUCCESS
