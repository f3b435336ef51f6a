-- The rules of submission, for both plug-ins: what is wrong with a job, what is changed in it, and what its owner should type instead.
-- Pure: a policy, a job and the time of day in, a verdict out. What the rules are for is in docs/reference/submission.md.

local use = ...
local words, price, request, paying = use("words"), use("price"), use("request"), use("paying")
local joined, options, has_member = words.joined, words.options, use("policy_file").has_member

local M = {}

-- The verdict that rules write into. `code` is the kind of the first error.
local function new_verdict() return { errors = {}, notes = {}, set = {} } end

-- One line, whatever users put into their options: it also goes to the log.
local function line(text) return (text:sub(1, 400):gsub("%c", "?")) end

local function refuse(verdict, code, text)
  verdict.code = verdict.code or code
  table.insert(verdict.errors, line(text))
end

local function answer(verdict, how, code, text)
  if how == "refuse" then
    refuse(verdict, code, text)
  elseif how == "warn" then
    table.insert(verdict.notes, line(text))
  end
end

-- A job is new, or an owner changes some of it; only what is new or changed is judged.
local function asked(job, what) return not job.changes or job.changes[what] end

local function groups_of(policy, uid)
  local groups = {}
  for _, project in ipairs(policy.projects) do
    if has_member(project, uid) then table.insert(groups, project.group) end
  end
  return groups
end

local function change_group(policy, uid)
  local groups = groups_of(policy, uid)
  if #groups == 0 then return "change to your project's group first, with: newgrp GROUP" end
  return "first type: " .. options("newgrp ", groups)
end

local function judge_account(policy, job, verdict)
  local project = policy.by_gid[job.gid]
  if not project and not asked(job, "account") then return nil end
  if not project then
    answer(verdict, policy.unlisted, "account",
      string.format("your current group (number %.0f) is no project: ", job.gid) .. change_group(policy, job.uid))
    return nil
  end
  if not job.account then
    verdict.set.account = project.account
  elseif job.account ~= project.account and asked(job, "account") then
    local other = policy.by_account[job.account]
    local hint = other and has_member(other, job.uid) and ", or first type: newgrp " .. other.group or ""
    local way = job.changes and "the account stays that of the group" or "leave out --account"
    local named = project.account ~= project.group and ", which is " .. project.account or ""
    refuse(verdict, "account", "account " .. job.account .. " is not that of your group " .. project.group .. named .. ": " .. way .. hint)
  end
  return project
end

-- Where jobs of a short-term allocation go, whatever they say.
local function force(job, verdict, what, wanted, project)
  if job[what] == wanted then return end
  if job.changes and asked(job, what) then
    refuse(verdict, what, "jobs of " .. project.group .. " have the " .. what .. " " .. wanted .. ": it cannot be changed")
  elseif not job.changes then
    verdict.set[what] = wanted
    if job[what] then
      answer(verdict, "warn", what, what .. " " .. job[what] .. " replaced by " .. wanted .. ", where all jobs of " .. project.group ..
        " run: leave out --" .. what)
    end
  end
end

local function judge_partition(policy, job, project, verdict)
  if project and project.reservation then force(job, verdict, "reservation", project.reservation, project) end
  if project and project.partition then
    force(job, verdict, "partition", project.partition, project)
    return policy.places[project.partition]
  end
  if not asked(job, "partition") then return policy.places[job.partition or ""] end
  local choice = "write " .. options("--partition=", policy.partitions)
  if not job.partition or job.partition == "" then
    refuse(verdict, "partition", "no partition is named: " .. choice)
  elseif job.partition:find(",", 1, true) then
    refuse(verdict, "partition", "a job runs in one partition, not in " .. job.partition .. ": " .. choice)
  elseif not policy.places[job.partition] then
    answer(verdict, policy.unlisted, "partition", "there is no partition " .. job.partition .. " to submit to: " .. choice)
  end
  return policy.places[job.partition]
end

local function has_type(place, type)
  for _, each in ipairs(place.gpus) do
    if each == type or each == "any" then return true end
  end
  return false
end

local function with_gpus(policy, type)
  local found = {}
  for _, name in ipairs(policy.partitions) do
    local place = policy.places[name]
    if #place.gpus > 0 and (not type or has_type(place, type)) then table.insert(found, name) end
  end
  return found
end

local function judge_gpus(policy, job, place, verdict)
  if #job.gpus == 0 or not (asked(job, "gpus") or asked(job, "partition")) then return end
  local first = job.gpus[1]
  if job.by_gres then
    local count = first.count * math.max(job.nodes or 1, 1)
    answer(verdict, policy.gres, "gres", "--gres=gpu counts GPUs of each node: write --gpus=" .. (first.type and first.type .. ":" or "") ..
      string.format("%.0f", count) .. " for the GPUs of the whole job")
  end
  if not place then return end
  if #place.gpus == 0 then
    local others = with_gpus(policy, first.type)
    local way = #others > 0 and "write " .. options("--partition=", others) .. ", or ask for no GPU" or "ask for no GPU"
    return refuse(verdict, "gres", "partition " .. place.name .. " has no GPUs: " .. way)
  end
  for _, each in ipairs(job.gpus) do
    if each.type and not has_type(place, each.type) then
      local others = with_gpus(policy, each.type)
      local elsewhere = #others > 0 and ", or " .. options("--partition=", others) .. " for " .. each.type or ""
      local typed = {}
      for at, type in ipairs(place.gpus) do typed[at] = "--gpus=" .. type .. string.format(":%.0f", each.count) end
      return refuse(verdict, "gres", "partition " .. place.name .. " has GPUs of type " .. joined(place.gpus, " and ") .. ", not " ..
        each.type .. ": write " .. joined(typed, " or ") .. elsewhere)
    end
  end
end

local function judge_qos(policy, job, project, verdict)
  local wanted = project and project.qos or policy.qos
  if wanted == nil or wanted == "" or wanted == job.qos then return job.qos end
  if job.changes then
    if job.changes.qos then refuse(verdict, "qos", "jobs have QOS " .. wanted .. " here: it cannot be changed") end
    return job.qos
  end
  verdict.set.qos = wanted
  if job.qos then answer(verdict, "warn", "qos", "QOS " .. job.qos .. " replaced by " .. wanted .. ": leave out --qos") end
  return wanted
end

local function judge_limit(job, place, verdict)
  local minutes = job.minutes
  if minutes == nil and place and place.default_minutes > 0 then
    minutes = place.default_minutes
    verdict.set.minutes = minutes
  end
  if (minutes == nil or minutes == math.huge) and asked(job, "minutes") then
    local what = minutes and "a job without an end is not taken" or "no time limit is given"
    refuse(verdict, "limit", what .. ": say how long it takes at most, for example --time=2:00:00")
  end
  return minutes ~= math.huge and minutes or nil
end

function M.is_stale(policy, now) return now - policy.written > policy.stale end

-- The price of a job as it is, in SU-minutes; nil when it has none here.
function M.amount(policy, job)
  local place = policy.places[job.partition or ""]
  if not place or not job.minutes or job.minutes == math.huge then return nil end
  return price.amount(policy, place, request.counts(job, place), job.qos, job.minutes)
end

function M.judge(policy, job, now)
  local verdict = new_verdict()
  if policy.exempt[job.uid] or job.uid == 0 then return verdict end
  local project = judge_account(policy, job, verdict)
  local place = judge_partition(policy, job, project, verdict)
  judge_gpus(policy, job, place, verdict)
  local qos = judge_qos(policy, job, project, verdict)
  local minutes = judge_limit(job, place, verdict)
  verdict.minutes = minutes
  if place and not job.memory and place.memory_per_cpu > 0 and not job.changes then verdict.set.memory_per_cpu = place.memory_per_cpu end
  local may_price = project and place and minutes and #verdict.errors == 0
  if may_price and policy.balances == "told" and policy.price ~= "ignore" and not M.is_stale(policy, now) then
    for _, text in ipairs(paying.judge(policy, job, project, place, { qos = qos, minutes = minutes })) do
      answer(verdict, policy.price, "price", text)
    end
  end
  return verdict
end

return M
