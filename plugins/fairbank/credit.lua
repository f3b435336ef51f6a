-- Check of a project's credit for a job, with the balances in the policy; and the three remedies.

local use = ...
local text, price, request = use("text"), use("price"), use("request")
local policy_file = use("policy_file")
local has_member, forced_value = policy_file.has_member, policy_file.forced_value

local M = {}

local LABELS = { cpu = "CPUs", mem = "of memory", ["gres/gpu"] = "GPUs" }

local function count_text(name, count)
  if name == "mem" then
    local size = count >= 1024 and string.format("%.0fG", math.floor(count / 1024))
      or string.format("%.0fM", count)
    return size .. " " .. LABELS.mem
  end
  local type = name:match("^gres/gpu:(.+)$")
  return string.format("%.0f ", count) .. (LABELS[name] or type and type .. " GPUs" or name)
end

local function counts_text(counts)
  local names, texts = {}, {}
  for name in pairs(counts) do table.insert(names, name) end
  table.sort(names)
  for i, name in ipairs(names) do texts[i] = count_text(name, counts[name]) end
  return text.join(texts, " and ")
end

-- Return the user's other projects that could pay, by how the user chooses one.
local function other_projects(policy, job, project, bill)
  local names = {}
  for _, other in ipairs(policy.projects) do
    local pays = (other.available[bill.resource] or 0) >= bill.amount
      and not forced_value(policy, "partition", other.account, bill.now)
    if other ~= project and pays and has_member(other, job.uid) then
      table.insert(names, policy.account == "group" and other.group or other.account)
    end
  end
  return names
end

local function remedies(policy, job, project, partition, counts, bill)
  local lines = {}
  local qos, minutes, available = bill.qos, bill.minutes, bill.available
  local longest = price.longest_limit(policy, partition, counts, qos, minutes, available)
  local reduced = price.reduced_counts(policy, partition, counts, qos, minutes, available)
  if longest > 0 then
    table.insert(lines, "a shorter limit that fits: --time=" .. request.time_option(longest))
  end
  if reduced and not partition.whole_nodes then
    local prefix = job.whole_nodes and "without --exclusive, " or ""
    table.insert(lines, "a smaller job that fits: " .. prefix .. "at most " .. counts_text(reduced))
  end
  local line = "more credit: ask for a deposit to " .. project.account
  local names = other_projects(policy, job, project, bill)
  if #names > 0 then
    local option = policy.account == "group" and "newgrp " or "--account="
    line = line .. ", or use another project: " .. text.options(option, names)
  end
  table.insert(lines, line)
  return lines
end

-- Return the lines to show if the project cannot pay for the job; none if it can. `bill` has the
-- QOS and the minutes of the price.
function M.check(policy, job, project, partition, bill)
  local counts = request.counts(job, partition)
  bill.amount = price.amount(policy, partition, counts, bill.qos, bill.minutes)
  local own = bill.qos and policy.resources[bill.qos]
  bill.resource = own or partition.resource
  bill.available = project.available[bill.resource]
  local is_paid = bill.available and bill.amount <= bill.available
  if is_paid or bill.amount == 0 or bill.amount <= (job.paid or 0) then return {} end
  local line
  if bill.available then
    line = "this job may cost " .. text.su(bill.amount) .. " SU; " .. project.account .. " has " ..
      text.su(bill.available) .. " SU of " .. bill.resource .. ", short by " ..
      text.shortfall(bill.amount, bill.available) .. " SU"
  else
    line = "project " .. project.account .. " has no credit for " .. bill.resource ..
      ", which " .. (own and "QOS " .. bill.qos or "partition " .. partition.name) .. " bills"
    bill.available = 0
  end
  local lines = { line }
  for _, remedy in ipairs(remedies(policy, job, project, partition, counts, bill)) do
    table.insert(lines, remedy)
  end
  return lines
end

return M
