-- Whether a project can pay a job with what it had when the bank was asked, and the three remedies when it cannot.

local use = ...
local words, price, request = use("words"), use("price"), use("request")
local joined, options, has_member = words.joined, words.options, use("policy_file").has_member

local M = {}

local NAMES = { cpu = "CPUs", mem = "of memory", ["gres/gpu"] = "GPUs" }

local function shown(name, count)
  local type = name:match("^gres/gpu:(.+)$")
  if name ~= "mem" then return string.format("%.0f ", count) .. (NAMES[name] or type and type .. " GPUs" or name) end
  return count >= 1024 and string.format("%.0fG ", math.floor(count / 1024)) .. NAMES.mem or string.format("%.0fM ", count) .. NAMES.mem
end

local function list_of(less)
  local names, texts = {}, {}
  for name in pairs(less) do table.insert(names, name) end
  table.sort(names)
  for place, name in ipairs(names) do texts[place] = shown(name, less[name]) end
  return joined(texts, " and ")
end

local function who_could(policy, job, project, resource, amount)
  local found = {}
  for _, other in ipairs(policy.projects) do
    if other ~= project and has_member(other, job.uid) and (other.left[resource] or 0) >= amount and not other.partition then
      table.insert(found, other.group)
    end
  end
  return found
end

local function remedies(policy, job, project, place, counts, bill)
  local lines, smaller = {}, job.whole_nodes and "without --exclusive, " or ""
  local longest = price.longest(policy, place, counts, bill.qos, bill.minutes, bill.left)
  local less = price.smaller(policy, place, counts, bill.qos, bill.minutes, bill.left)
  table.insert(lines, longest > 0 and "a shorter limit that fits: --time=" .. request.limit(longest) or nil)
  table.insert(lines, less and "a smaller job that fits: " .. smaller .. "at most " .. list_of(less) or nil)
  local others = who_could(policy, job, project, place.resource, bill.amount)
  local more = "more credit: ask for a deposit to " .. project.account
  if #others > 0 then more = more .. ", or use another project: " .. options("newgrp ", others) end
  table.insert(lines, more)
  return lines
end

-- What to tell the owner of a job that its project cannot pay, line by line; nothing when it can. `bill` has the QOS and the minutes that count.
function M.judge(policy, job, project, place, bill)
  local counts = request.counts(job, place)
  bill.amount = price.amount(policy, place, counts, bill.qos, bill.minutes)
  bill.left = project.left[place.resource]
  if bill.left and bill.amount <= bill.left or bill.amount == 0 or bill.amount <= (job.paid or 0) then return {} end
  local text
  if bill.left then
    text = "this job may cost " .. price.show(bill.amount) .. " SU; " .. project.account .. " has " .. price.show(bill.left, true) ..
      " SU of " .. place.resource .. ", short by " .. price.show_short(bill.amount, bill.left) .. " SU"
  else
    text = "project " .. project.account .. " has no credit for " .. place.resource .. ", which partition " .. place.name .. " bills"
    bill.left = 0
  end
  return { text, (table.unpack or unpack)(remedies(policy, job, project, place, counts, bill)) }
end

return M
