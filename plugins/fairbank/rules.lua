-- Rules of submission for both plug-ins: errors of a job, values to set in it, and what its owner
-- should type instead. No input or output: a policy, a job and a time give a verdict.
-- docs/reference/submission.md explains the rules.

local use = ...
local text, price, request, credit = use("text"), use("price"), use("request"), use("credit")
local has_member = use("policy_file").has_member

local M = {}

-- `code` is the kind of the first error.
local function new_verdict() return { errors = {}, notes = {}, set = {} } end

-- Return one line of visible characters: users choose parts of it, and it also goes to the log.
local function one_line(message) return (message:sub(1, 400):gsub("%c", "?")) end

local function refuse(verdict, code, message)
  verdict.code = verdict.code or code
  table.insert(verdict.errors, one_line(message))
end

-- Apply an action of the policy: "refuse", "warn" or "ignore".
local function apply(verdict, action, code, message)
  if action == "refuse" then
    refuse(verdict, code, message)
  elseif action == "warn" then
    table.insert(verdict.notes, one_line(message))
  end
end

-- Return true for all fields of a new job, and for the fields that a change of a job changes.
local function is_new(job, field) return not job.changes or job.changes[field] end

local function newgrp_hint(policy, uid)
  local groups = {}
  for _, project in ipairs(policy.projects) do
    if has_member(project, uid) then table.insert(groups, project.group) end
  end
  if #groups == 0 then return "change to your project's group first, with: newgrp GROUP" end
  return "first type: " .. text.options("newgrp ", groups)
end

local function check_account(policy, job, verdict)
  local project = policy.by_gid[job.gid]
  if not project and not is_new(job, "account") then return nil end
  if not project then
    apply(verdict, policy.unlisted, "account",
      string.format("your current group (number %.0f) is no project: ", job.gid) ..
        newgrp_hint(policy, job.uid))
    return nil
  end
  if not job.account then
    verdict.set.account = project.account
  elseif job.account ~= project.account and is_new(job, "account") then
    local other = policy.by_account[job.account]
    local is_member = other and has_member(other, job.uid)
    local hint = is_member and ", or first type: newgrp " .. text.shell_word(other.group) or ""
    local remedy = job.changes and "the account stays that of the group" or "leave out --account"
    local name = project.account ~= project.group and ", which is " .. project.account or ""
    refuse(verdict, "account", "account " .. job.account .. " is not that of your group " ..
      project.group .. name .. ": " .. remedy .. hint)
  end
  return project
end

-- Set a field that all jobs of a project with its own partition or reservation have.
local function force(job, verdict, field, value, project)
  if job[field] == value then return end
  if job.changes and is_new(job, field) then
    refuse(verdict, field, "jobs of " .. project.group .. " have the " .. field .. " " .. value ..
      ": it cannot be changed")
  elseif not job.changes then
    verdict.set[field] = value
    if job[field] then
      apply(verdict, "warn", field, field .. " " .. job[field] .. " replaced by " .. value ..
        ", where all jobs of " .. project.group .. " run: leave out --" .. field)
    end
  end
end

-- Return the partition of the job, or nil.
local function check_partition(policy, job, project, verdict)
  if project and project.reservation then
    force(job, verdict, "reservation", project.reservation, project)
  end
  if project and project.partition then
    force(job, verdict, "partition", project.partition, project)
    return policy.partitions[project.partition]
  end
  if not is_new(job, "partition") then return policy.partitions[job.partition or ""] end
  local remedy = "write " .. text.options("--partition=", policy.partition_names)
  if not job.partition or job.partition == "" then
    refuse(verdict, "partition", "no partition is named: " .. remedy)
  elseif job.partition:find(",", 1, true) then
    refuse(verdict, "partition",
      "a job runs in one partition, not in " .. job.partition .. ": " .. remedy)
  elseif not policy.partitions[job.partition] then
    apply(verdict, policy.unlisted, "partition",
      "there is no partition " .. job.partition .. " to submit to: " .. remedy)
  end
  return policy.partitions[job.partition]
end

local function has_gpu_type(partition, type)
  for _, gpu_type in ipairs(partition.gpus) do
    if gpu_type == type or gpu_type == "any" then return true end
  end
  return false
end

local function gpu_partitions(policy, type)
  local names = {}
  for _, name in ipairs(policy.partition_names) do
    local partition = policy.partitions[name]
    if #partition.gpus > 0 and (not type or has_gpu_type(partition, type)) then
      table.insert(names, name)
    end
  end
  return names
end

local function check_gpu_type(policy, partition, gpu, verdict)
  if not gpu.type or has_gpu_type(partition, gpu.type) then return true end
  local others = gpu_partitions(policy, gpu.type)
  local elsewhere = #others > 0
    and ", or " .. text.options("--partition=", others) .. " for " .. gpu.type or ""
  local options = {}
  for i, type in ipairs(partition.gpus) do
    options[i] = "--gpus=" .. type .. string.format(":%.0f", gpu.count)
  end
  refuse(verdict, "gres", "partition " .. partition.name .. " has GPUs of type " ..
    text.join(partition.gpus, " and ") .. ", not " .. gpu.type .. ": write " ..
    text.join(options, " or ") .. elsewhere)
  return false
end

local function check_gpus(policy, job, partition, verdict)
  if #job.gpus == 0 or not (is_new(job, "gpus") or is_new(job, "partition")) then return end
  local first = job.gpus[1]
  if job.by_gres then
    local count = first.count * math.max(job.nodes or 1, 1)
    apply(verdict, policy.gres, "gres", "--gres=gpu counts GPUs of each node: write --gpus=" ..
      (first.type and first.type .. ":" or "") .. string.format("%.0f", count) ..
      " for the GPUs of the whole job")
  end
  if not partition then return end
  if #partition.gpus == 0 then
    local others = gpu_partitions(policy, first.type)
    local remedy = #others > 0
      and "write " .. text.options("--partition=", others) .. ", or ask for no GPU"
      or "ask for no GPU"
    return refuse(verdict, "gres", "partition " .. partition.name .. " has no GPUs: " .. remedy)
  end
  for _, gpu in ipairs(job.gpus) do
    if not check_gpu_type(policy, partition, gpu, verdict) then return end
  end
end

-- Return the QOS that the job will have.
local function check_qos(policy, job, project, verdict)
  local required = project and project.qos or policy.qos
  if required == nil or required == "" or required == job.qos then return job.qos end
  if job.changes then
    if job.changes.qos then
      refuse(verdict, "qos", "jobs have QOS " .. required .. " here: it cannot be changed")
    end
    return job.qos
  end
  verdict.set.qos = required
  if job.qos then
    apply(verdict, "warn", "qos",
      "QOS " .. job.qos .. " replaced by " .. required .. ": leave out --qos")
  end
  return required
end

-- Return the time limit that the job will have, or nil.
local function check_limit(job, partition, verdict)
  local minutes = job.minutes
  if minutes == nil and partition and partition.default_minutes > 0 then
    minutes = partition.default_minutes
    verdict.set.minutes = minutes
  end
  if (minutes == nil or minutes == math.huge) and is_new(job, "minutes") then
    local problem = minutes and "a job without a time limit is not accepted"
      or "no time limit is given"
    refuse(verdict, "limit",
      problem .. ": say how long it takes at most, for example --time=2:00:00")
  end
  return minutes ~= math.huge and minutes or nil
end

function M.is_stale(policy, now) return now - policy.written > policy.stale end

-- Return the price of a job in SU-minutes; nil without a known partition or a finite limit.
function M.amount(policy, job)
  local partition = policy.partitions[job.partition or ""]
  if not partition or not job.minutes or job.minutes == math.huge then return nil end
  return price.amount(policy, partition, request.counts(job, partition), job.qos, job.minutes)
end

-- Return the verdict on a new or changed job.
function M.check(policy, job, now)
  local verdict = new_verdict()
  if policy.exempt[job.uid] or job.uid == 0 then return verdict end
  local project = check_account(policy, job, verdict)
  local partition = check_partition(policy, job, project, verdict)
  check_gpus(policy, job, partition, verdict)
  local qos = check_qos(policy, job, project, verdict)
  local minutes = check_limit(job, partition, verdict)
  verdict.minutes = minutes
  if partition and not job.memory and partition.memory_per_cpu > 0 and not job.changes then
    verdict.set.memory_per_cpu = partition.memory_per_cpu
  end
  -- Last, and only for a job without errors: the price of a wrong request would mislead.
  local has_price = project and partition and minutes and #verdict.errors == 0
  local is_checked = policy.balances == "included" and policy.price ~= "ignore"
  if has_price and is_checked and not M.is_stale(policy, now) then
    local bill = { qos = qos, minutes = minutes }
    for _, message in ipairs(credit.check(policy, job, project, partition, bill)) do
      apply(verdict, policy.price, "price", message)
    end
  end
  return verdict
end

return M
