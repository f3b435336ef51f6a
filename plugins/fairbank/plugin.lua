-- What both plug-ins do alike: load the rules, keep the policy in memory, and let no error of ours through to Slurm.

local folder = ...

local loaded = {}

local function use(name)
  if not loaded[name] then loaded[name] = assert(loadfile(folder .. "/" .. name .. ".lua"))(use) end
  return loaded[name]
end

local M = { request = use("request"), rules = use("rules") }
local policy_file = use("policy_file")
local PATH = folder .. "/policy"

local known, told

-- Uid or Gid of this process: of who typed a command, whatever --uid and --gid say, or of slurmctld.
function M.own(which)
  local file = io.open("/proc/self/status", "r")
  if not file then return nil end
  local id = file:read("*a"):match(which .. ":%s*(%d+)")
  file:close()
  return tonumber(id)
end

-- Something for the log, once as long as it stays the same.
local function tell_once(tell, text)
  if text and text ~= told then tell("%s", text) end
  told = text
end

-- The policy, read again when the file has changed. When the file cannot be read, the one read before; or nil. `tell` says what is wrong.
function M.policy(tell, now)
  local policy, why = policy_file.read(PATH, known)
  if not policy then
    tell_once(tell, "Fairbank: policy file " .. PATH .. ": " .. why .. (known and "; the policy read before stays in force" or "") ..
      "; write it again with: fairbank slurm sync")
    return known
  end
  known = policy
  tell_once(tell, M.rules.is_stale(policy, now) and policy.balances == "told" and "Fairbank: policy file " .. PATH ..
    " is too old, so no price is checked; is `fairbank slurm sync` still running?" or nil)
  return policy
end

return M
