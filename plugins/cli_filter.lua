-- Fairbank in sbatch, salloc, srun and scrontab (CliFilterPlugins=lua): shows errors before the
-- command asks slurmctld. This file is beside slurm.conf, and the rules are in the directory
-- `fairbank` next to it. Users can bypass it; job_submit.lua enforces the rules.

local WHEN_UNREADABLE = "admit" -- or "refuse": for all jobs while there is no policy
local FOLDER = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "/etc/slurm") .. "/fairbank"

local is_loaded, plugin = pcall(function()
  return assert(loadfile(FOLDER .. "/plugin.lua"))(FOLDER)
end)

-- Return the value, or nil for one that means "not given".
local function given(value)
  local is_given = value ~= nil and value ~= "" and value ~= "unset" and value ~= "invalid-context"
  return is_given and value or nil
end

local function number(value, min)
  local parsed = tonumber((given(value) or ""):match("^%d+"))
  return parsed and parsed >= min and parsed or nil
end

-- Without --uid and --gid, Slurm up to 22.05 gives the user's own ids, and 24.11 those of nobody.
local NOBODY = 99
local function id(value)
  local parsed = number(value, 0)
  return parsed ~= NOBODY and parsed or nil
end

local function memory_of(options)
  for option, per in pairs({ ["mem-per-cpu"] = "cpu", ["mem-per-gpu"] = "gpu", mem = "node" }) do
    local mib = plugin.request.mebibytes(given(options[option]))
    if mib then return { per = per, mib = mib } end
  end
  return nil
end

local function gpus_of(options)
  local gpus = {}
  plugin.request.add_gpus(gpus, given(options.gpus), "job", true)
  plugin.request.add_gpus(gpus, given(options["gpus-per-node"]), "node", true)
  plugin.request.add_gpus(gpus, given(options["gpus-per-task"]), "task", true)
  plugin.request.add_gpus(gpus, given(options["gpus-per-socket"]), "job", true)
  return plugin.request.add_gpus(gpus, given(options.gres), "node")
end

local function job_of(options)
  local nodes = number(options.nodes, 1) or 1
  local per_node = number(options["ntasks-per-node"], 1)
  local tasks = math.max(number(options.ntasks, 1) or 1, per_node and per_node * nodes or 1)
  return {
    uid = id(options.uid) or plugin.own_id("Uid"),
    gid = id(options.gid) or plugin.own_id("Gid") or -1,
    account = given(options.account), is_default_unknown = true,
    partition = given(options.partition),
    qos = given(options.qos), reservation = given(options.reservation),
    minutes = plugin.request.minutes(given(options.time)), nodes = nodes, tasks = tasks,
    cpus = tasks * (number(options["cpus-per-task"], 1) or 1),
    tasks_per_node = per_node, cpus_per_gpu = number(options["cpus-per-gpu"], 1),
    memory = memory_of(options),
    gpus = gpus_of(options),
    by_gres = #plugin.request.add_gpus({}, given(options.gres), "node") > 0,
    whole_nodes = options.exclusive == "exclusive",
  }
end

-- Return true for srun within a job: a step requests nothing new.
local function is_step(options)
  local is_in_job = os.getenv("SLURM_JOB_ID") ~= nil or given(options.jobid) ~= nil
  return options["type"] == "srun" and is_in_job
end

-- Not in plugin.lua: this also decides if that file cannot be loaded.
local function result_without_policy()
  if WHEN_UNREADABLE ~= "refuse" then return slurm.SUCCESS end
  slurm.log_error("%s",
    "jobs cannot be checked now, so none is accepted: try again later, or tell the staff")
  return slurm.ERROR
end

local function check(options)
  local policy = plugin.policy(slurm.log_debug, os.time())
  local uid = plugin.own_id("Uid")
  if uid == 0 or is_step(options) then return slurm.SUCCESS end
  if not policy then return result_without_policy() end
  if policy.exempt[uid or -1] then return slurm.SUCCESS end
  local verdict = plugin.rules.check(policy, job_of(options), os.time())
  for _, message in ipairs(verdict.errors) do slurm.log_error("%s", message) end
  for _, message in ipairs(verdict.notes) do slurm.log_info("%s", message) end
  if verdict.code then return slurm.ERROR end
  for _, field in ipairs({ "account", "partition", "reservation", "qos" }) do
    if verdict.set[field] then options[field] = verdict.set[field] end
  end
  return slurm.SUCCESS
end

-- No error of ours stops the command.
function slurm_cli_pre_submit(options, offset)
  local is_ok, code = false, plugin
  if is_loaded then is_ok, code = pcall(check, options) end
  if is_ok then return code end
  slurm.log_debug("Fairbank: submission rules in %s failed: %s", FOLDER, tostring(code))
  return result_without_policy()
end

function slurm_cli_setup_defaults(options, early) return slurm.SUCCESS end

function slurm_cli_post_submit(offset, job_id, step_id) return slurm.SUCCESS end

return slurm.SUCCESS
