-- Rules of submission for both plug-ins: errors of a job, values to set in it, and what its owner
-- should type instead. No input or output: a policy, a job and a time give a verdict.
-- docs/reference/submission.md explains the rules.

local use = ...
local text, price, request, credit = use("text"), use("price"), use("request"), use("credit")
local policy_file = use("policy_file")
local has_member, forced_value, is_closed =
  policy_file.has_member, policy_file.forced_value, policy_file.is_closed

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

-- Return the project of the current Unix group, which is the only choice under `account group`.
local function check_group_account(policy, job, verdict)
  local project = policy.by_gid[job.gid]
  if not project and not is_new(job, "account") then return nil end
  if not project then
    apply(verdict, policy.unlisted, "account",
      string.format("your current group (number %.0f) is not a project: ", job.gid) ..
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

-- Return true if the user may charge the project: a member, or a job of its Unix group.
local function is_of_project(project, job)
  return project ~= nil and (project.gid == job.gid or has_member(project, job.uid))
end

local function accounts_of(policy, job)
  local accounts = {}
  for _, project in ipairs(policy.projects) do
    if is_of_project(project, job) then table.insert(accounts, project.account) end
  end
  return accounts
end

-- Return the account of a job without --account: Slurm's default account if it is a project of the
-- user, else their current Unix group's, else their only one.
local function default_account(policy, job, accounts)
  if is_of_project(policy.by_account[job.default_account or ""], job) then
    return job.default_account
  end
  local of_group = policy.by_gid[job.gid]
  return of_group and of_group.account or #accounts == 1 and accounts[1] or nil
end

-- Return the project that the user has chosen with --account.
local function check_member_account(policy, job, verdict)
  local project = policy.by_account[job.account or ""]
  if not is_new(job, "account") or is_of_project(project, job) then return project end
  local accounts = accounts_of(policy, job)
  local remedy = #accounts > 0 and "write " .. text.options("--account=", accounts)
    or "ask your project's PI or coordinator to add you"
  if not job.account then
    local account = default_account(policy, job, accounts)
    verdict.set.account = account
    if not account then
      apply(verdict, #accounts > 0 and "refuse" or policy.unlisted, "account",
        (#accounts > 0 and "no account is named: " or "you are a member of no project: ") .. remedy)
    end
    return policy.by_account[account or ""]
  elseif project then
    refuse(verdict, "account",
      "you are not a member of project " .. project.account .. ": " .. remedy)
  else
    apply(verdict, policy.unlisted, "account",
      "account " .. job.account .. " is not a project: " .. remedy)
  end
  return nil
end

-- Return true if only slurmctld knows the account: it is the default of a user with several
-- projects.
local function is_account_unknown(policy, job)
  return policy.account == "member" and job.is_default_unknown and not job.account
    and #accounts_of(policy, job) > 1
end

-- Set a field that all jobs of a project with a short-term allocation have.
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

-- Return the listed partitions in a list such as "cpu,gpu", and the names that are not listed.
local function listed_partitions(policy, list)
  local partitions, unlisted = {}, {}
  for name in (list or ""):gmatch("[^,]+") do
    table.insert(policy.partitions[name] and partitions or unlisted,
      policy.partitions[name] or name)
  end
  return partitions, unlisted
end

-- Set or check the reservation. Slurm knows whether it exists.
local function check_reservation(policy, job, project, verdict, now)
  local account = project and project.account
  local forced = forced_value(policy, "reservation", account, now)
  if forced then
    force(job, verdict, "reservation", forced, project)
  elseif job.reservation and is_new(job, "reservation")
    and is_closed(policy, "reservation", job.reservation, account, now) then
    refuse(verdict, "reservation",
      "there is no reservation " .. job.reservation .. " for you: leave out --reservation")
  end
end

-- Return the names of partitions that are not closed to the account.
local function open_names(policy, account, now)
  local names = {}
  for _, name in ipairs(policy.partition_names) do
    if not is_closed(policy, "partition", name, account, now) then table.insert(names, name) end
  end
  return names
end

-- Return the partitions in which the job may run: none, one, or several.
local function check_partitions(policy, job, project, verdict, now)
  local account = project and project.account
  local forced = forced_value(policy, "partition", account, now)
  if forced then
    force(job, verdict, "partition", forced, project)
    return { policy.partitions[forced] }
  end
  local list = job.partition ~= "" and job.partition or nil
  if not list and policy.default ~= "" then list = policy.default end
  local partitions, unlisted = listed_partitions(policy, list)
  if not is_new(job, "partition") then return partitions end
  local remedy = "write " .. text.options("--partition=", open_names(policy, account, now))
  local closed = {}
  for _, partition in ipairs(partitions) do
    if is_closed(policy, "partition", partition.name, account, now) then
      table.insert(closed, partition.name)
    end
  end
  if not list then
    refuse(verdict, "partition", "no partition is named: " .. remedy)
  elseif policy.list == "refuse" and list:find(",", 1, true) then
    refuse(verdict, "partition", "a job runs in one partition, not in " .. list .. ": " .. remedy)
  elseif #closed > 0 then
    refuse(verdict, "partition",
      "there is no partition " .. text.join(closed, " and no ") .. " to submit to: " .. remedy)
  elseif #unlisted > 0 then
    apply(verdict, policy.unlisted, "partition", "there is no partition " ..
      text.join(unlisted, " and no ") .. " to submit to: " .. remedy)
  end
  return partitions
end

-- Slurm compares types with their case.
local function has_gpu_type(partition, type)
  for _, gpu_type in ipairs(partition.gpus) do
    if gpu_type == type or gpu_type == "any" then return true end
  end
  return false
end

local function gpu_partitions(policy, open, type)
  local names = {}
  for _, name in ipairs(open) do
    local partition = policy.partitions[name]
    if #partition.gpus > 0 and (not type or has_gpu_type(partition, type)) then
      table.insert(names, name)
    end
  end
  return names
end

-- Return the error of GPUs that the partition does not have, or nil. Those of a partition without
-- a known node are unknown, and Slurm judges them.
local function gpu_error(policy, partition, gpus, open)
  if partition.node_cpus == 0 then return nil end
  if #partition.gpus == 0 then
    local others = gpu_partitions(policy, open, gpus[1].type)
    local remedy = #others > 0
      and "write " .. text.options("--partition=", others) .. ", or ask for no GPU"
      or "ask for no GPU"
    return "partition " .. partition.name .. " has no GPUs: " .. remedy
  end
  for _, gpu in ipairs(gpus) do
    if gpu.type and not has_gpu_type(partition, gpu.type) then
      local others = gpu_partitions(policy, open, gpu.type)
      local elsewhere = #others > 0
        and ", or " .. text.options("--partition=", others) .. " for " .. gpu.type or ""
      local options = {}
      for i, type in ipairs(partition.gpus) do
        options[i] = "--gpus=" .. type .. string.format(":%.0f", gpu.count)
      end
      return "partition " .. partition.name .. " has GPUs of type " ..
        text.join(partition.gpus, " and ") .. ", not " .. gpu.type .. ": write " ..
        text.join(options, " or ") .. elsewhere
    end
  end
  return nil
end

-- One of several partitions must have the GPUs: Slurm passes over the others.
local function check_gpus(policy, job, partitions, open, verdict)
  if #job.gpus == 0 or not (is_new(job, "gpus") or is_new(job, "partition")) then return end
  local first = job.gpus[1]
  if job.by_gres then
    local count = first.count * math.max(job.nodes or 1, 1)
    apply(verdict, policy.gres, "gres", "--gres=gpu counts GPUs of each node: write --gpus=" ..
      (first.type and first.type .. ":" or "") .. string.format("%.0f", count) ..
      " for the GPUs of the whole job")
  end
  local first_error
  for _, partition in ipairs(partitions) do
    local problem = gpu_error(policy, partition, job.gpus, open)
    if not problem then return end
    first_error = first_error or problem
  end
  if first_error then refuse(verdict, "gres", first_error) end
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

-- Return the limit of a job without one: the longest default of its partitions; 0 if one of them
-- has none.
local function default_minutes(partitions)
  local minutes = 0
  for _, partition in ipairs(partitions) do
    if partition.default_minutes == 0 then return 0 end
    minutes = math.max(minutes, partition.default_minutes)
  end
  return minutes
end

-- Return the time limit that the job will have, or nil. With several partitions Slurm sets it.
local function check_limit(job, partitions, verdict)
  local minutes = job.minutes
  local default = default_minutes(partitions)
  if minutes == nil and default > 0 then
    minutes = default
    if #partitions == 1 then verdict.set.minutes = minutes end
  end
  if (minutes == nil or minutes == math.huge) and is_new(job, "minutes") then
    local problem = minutes and "a job without a time limit is not accepted"
      or "no time limit is given"
    refuse(verdict, "limit",
      problem .. ": say how long it takes at most, for example --time=2:00:00")
  end
  return minutes ~= math.huge and minutes or nil
end

-- Return the lines on the credit in the partition where the job lacks most; none if all can be
-- paid.
local function credit_lines(policy, job, project, partitions, qos, minutes, now)
  local lines, most = {}, nil
  for _, partition in ipairs(partitions) do
    local bill = { qos = qos, minutes = minutes, now = now }
    local messages = credit.check(policy, job, project, partition, bill)
    local missing = #messages > 0 and bill.amount - bill.available or nil
    if missing and (not most or missing > most) then lines, most = messages, missing end
  end
  return lines
end

function M.is_stale(policy, now) return now - policy.written > policy.stale end

-- Return the highest price of a job in SU-minutes; nil without a known partition or a finite limit.
function M.amount(policy, job)
  if not job.minutes or job.minutes == math.huge then return nil end
  local most
  for _, partition in ipairs((listed_partitions(policy, job.partition))) do
    local counts = request.counts(job, partition)
    local amount = price.amount(policy, partition, counts, job.qos, job.minutes)
    most = math.max(most or amount, amount)
  end
  return most
end

-- Return the verdict on a new or changed job.
function M.check(policy, job, now)
  local verdict = new_verdict()
  if policy.exempt[job.uid] or job.uid == 0 then return verdict end
  if is_account_unknown(policy, job) then return verdict end
  local check_account = policy.account == "group" and check_group_account or check_member_account
  local project = check_account(policy, job, verdict)
  check_reservation(policy, job, project, verdict, now)
  local partitions = check_partitions(policy, job, project, verdict, now)
  local open = open_names(policy, project and project.account, now)
  check_gpus(policy, job, partitions, open, verdict)
  local qos = check_qos(policy, job, project, verdict)
  local minutes = check_limit(job, partitions, verdict)
  -- Without a limit of its own, a job in several partitions gets that of the one it starts in.
  if job.minutes or #partitions < 2 then verdict.minutes = minutes end
  local memory = #partitions == 1 and partitions[1].memory_per_cpu or 0
  if not job.memory and memory > 0 and not job.changes then
    verdict.set.memory_per_cpu = memory
  end
  -- Last, and only for a job without errors: the price of a wrong request would mislead.
  local has_price = project and minutes and #verdict.errors == 0
  local is_checked = policy.balances == "included" and policy.price ~= "ignore"
  if has_price and is_checked and not M.is_stale(policy, now) then
    for _, message in ipairs(credit_lines(policy, job, project, partitions, qos, minutes, now)) do
      apply(verdict, policy.price, "price", message)
    end
  end
  return verdict
end

return M
