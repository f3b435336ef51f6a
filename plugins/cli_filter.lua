-- Fairbank in sbatch, salloc, srun and scrontab (CliFilterPlugins=lua), so that users are told before slurmctld is asked. Beside
-- slurm.conf; the rules are in the folder `fairbank` next to it. A convenience: job_submit.lua is what nobody goes round.

local WHEN_UNREADABLE = "admit" -- or "refuse": every job, as long as there is no policy to judge by
local FOLDER = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "/etc/slurm") .. "/fairbank"

local there, plugin = pcall(function() return assert(loadfile(FOLDER .. "/plugin.lua"))(FOLDER) end)

local function given(text) return text ~= nil and text ~= "" and text ~= "unset" and text ~= "invalid-context" and text or nil end

local function number(text, least)
  local found = tonumber((given(text) or ""):match("^%d+"))
  return found and found >= least and found or nil
end

-- The number that --uid or --gid was given. Without them Slurm tells one's own up to 22.05, and nobody's in 24.11.
local NOBODY = 99
local function id(text)
  local found = number(text, 0)
  return found ~= NOBODY and found or nil
end

local function memory_of(options)
  for option, per in pairs({ ["mem-per-cpu"] = "cpu", ["mem-per-gpu"] = "gpu", mem = "node" }) do
    local mib = plugin.request.mebibytes(given(options[option]))
    if mib then return { per = per, mib = mib } end
  end
  return nil
end

local function gpus_of(options)
  local found = {}
  for _, each in ipairs({ "gpus job", "gpus-per-node node", "gpus-per-task task", "gpus-per-socket job" }) do
    local option, per = each:match("(%S+) (%S+)")
    plugin.request.gpus(given(options[option]), per, found, true)
  end
  return plugin.request.gpus(given(options.gres), "node", found)
end

local function job_of(options)
  local nodes = number(options.nodes, 1) or 1
  local per_node, per_gpu = number(options["ntasks-per-node"], 1), number(options["cpus-per-gpu"], 1)
  local tasks = math.max(number(options.ntasks, 1) or 1, per_node and per_node * nodes or 1)
  return {
    uid = id(options.uid) or plugin.own("Uid"), gid = id(options.gid) or plugin.own("Gid") or -1, account = given(options.account),
    partition = given(options.partition), qos = given(options.qos), reservation = given(options.reservation),
    minutes = plugin.request.minutes(given(options.time)), nodes = nodes, tasks = tasks,
    cpus = tasks * (number(options["cpus-per-task"], 1) or 1), cpus_per_gpu = per_gpu, memory = memory_of(options),
    gpus = gpus_of(options), by_gres = (given(options.gres) or ""):find("gpu", 1, true) ~= nil,
    whole_nodes = options.exclusive == "exclusive",
  }
end

-- srun within a job starts a step of it, which asks for nothing new.
local function is_step(options)
  return options["type"] == "srun" and (os.getenv("SLURM_JOB_ID") ~= nil or given(options.jobid) ~= nil)
end

local function unreadable()
  if WHEN_UNREADABLE ~= "refuse" then return slurm.SUCCESS end
  slurm.log_error("%s", "jobs cannot be checked at present, so none is taken: please try again later, or tell the staff")
  return slurm.ERROR
end

local function check(options)
  local policy = plugin.policy(slurm.log_debug, os.time())
  local uid = plugin.own("Uid")
  if uid == 0 or is_step(options) then return slurm.SUCCESS end
  if not policy then return unreadable() end
  if policy.exempt[uid or -1] then return slurm.SUCCESS end
  local verdict = plugin.rules.judge(policy, job_of(options), os.time())
  for _, text in ipairs(verdict.errors) do slurm.log_error("%s", text) end
  for _, text in ipairs(verdict.notes) do slurm.log_info("%s", text) end
  if verdict.code then return slurm.ERROR end
  for _, what in ipairs({ "account", "partition", "reservation", "qos" }) do
    if verdict.set[what] then options[what] = verdict.set[what] end
  end
  return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, offset)
  local fine, code = false, plugin
  if there then fine, code = pcall(check, options) end
  if fine then return code end
  slurm.log_debug("Fairbank: submission rules in %s failed: %s", FOLDER, tostring(code))
  return unreadable()
end

function slurm_cli_setup_defaults(options, early) return slurm.SUCCESS end

function slurm_cli_post_submit(offset, job_id, step_id) return slurm.SUCCESS end

return slurm.SUCCESS
