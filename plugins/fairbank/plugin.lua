-- Shared by both plug-ins: load the rules, and keep the policy in memory.

local folder = ...

local modules = {}

local function use(name)
  if not modules[name] then
    modules[name] = assert(loadfile(folder .. "/" .. name .. ".lua"))(use)
  end
  return modules[name]
end

local M = { request = use("request"), rules = use("rules") }
local policy_file = use("policy_file")
local PATH = folder .. "/policy"

local cached_policy, last_logged

-- Return the "Uid" or "Gid" of this process: that of the user who typed a command, whatever --uid
-- and --gid say, or that of slurmctld.
function M.own_id(kind)
  local file = io.open("/proc/self/status", "r")
  if not file then return nil end
  local id = file:read("*a"):match(kind .. ":%s*(%d+)")
  file:close()
  return tonumber(id)
end

-- Log a text unless it is the last one again.
local function log_once(log, text)
  if text and text ~= last_logged then log("%s", text) end
  last_logged = text
end

-- Return the policy, and read the file if it has changed. If it cannot be read, return the last
-- good policy or nil, and log the problem.
function M.policy(log, now)
  local policy, problem = policy_file.read(PATH, cached_policy)
  if not policy then
    log_once(log, "Fairbank: policy file " .. PATH .. ": " .. problem ..
      (cached_policy and "; the policy read before stays in force" or "") ..
      "; write it again with: fairbank slurm sync")
    return cached_policy
  end
  cached_policy = policy
  local is_stale = M.rules.is_stale(policy, now) and policy.balances == "included"
  log_once(log, is_stale and "Fairbank: policy file " .. PATH .. " is too old, so no price is " ..
    "checked; is `fairbank slurm sync` still running?" or nil)
  return policy
end

return M
