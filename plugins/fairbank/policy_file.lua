-- Reader of the submission policy's file. The file is data and never executed, and any error in it
-- is reported. src/fairbank/slurm/policy_file.py writes it, and
-- docs/decisions/0011-submission-policy-file.md has its format. For Lua 5.1 to 5.5, no libraries.

local M = { VERSION = 7, SIZE_MAX = 4 * 1024 * 1024 }

local function pattern_reader(pattern, max_length)
  return function(text)
    return #text <= max_length and text:find(pattern) and text or nil
  end
end

local function one_of(...)
  local allowed = {}
  for _, word in ipairs({ ... }) do allowed[word] = true end
  return function(text) return allowed[text] and text or nil end
end

local function integer(text)
  return #text <= 17 and text:find("^%-?[0-9]+$") and tonumber(text) or nil
end

local name = pattern_reader("^[^%c]+$", 255)
local cluster = pattern_reader("^[^%c /@:]+$", 255)
local resource = pattern_reader("^[a-z][a-z0-9_-]*$", 32)
local tres = pattern_reader("^[a-z][^%c ]*$", 300)
local action = one_of("refuse", "warn", "ignore")

local function count(text)
  local number = integer(text)
  return number and number >= 0 and number or nil
end

local function positive(text)
  local number = integer(text)
  return number and number >= 1 and number <= 2 ^ 40 and number or nil
end

-- Kept as text, " 60601 60602 ": a search is fast enough, and a table would cost time at each load.
local function uids(text) return text:find("^ [0-9 ]*$") and text or nil end

local function optional(text)
  if text == "" then return "" end
  return name(text)
end

-- Reader of each field, by kind of line.
local FIELDS = {
  cluster = { cluster }, price = { action }, gres = { action }, unlisted = { action },
  account = { one_of("member", "group") }, default = { optional },
  list = { one_of("admit", "refuse") },
  qos = { optional }, stale = { count }, scale = { positive }, factor = { name, count },
  billed = { name, resource },
  exempt = { count },
  partition = {
    name, resource, one_of("sum", "max_tres", "max_tres_gres"), positive,
    count, count, count, count, one_of("exclusive", "shared"), count,
  },
  gpu = { name, name, count }, weight = { name, tres, count },
  project = { name, count, name, optional, uids },
  short = { name, optional, optional, count, count },
  balances = { one_of("included", "omitted") }, balance = { name, resource, integer },
}

local REQUIRED = {
  "cluster", "price", "gres", "unlisted", "account", "default", "list", "qos", "stale", "scale",
  "balances",
}

local function nonempty(text) return text ~= "" and text or nil end

-- Functions that add the values of a line to the policy. Each returns an error text, or nothing.
local ADD = {}

for _, word in ipairs(REQUIRED) do
  ADD[word] = function(policy, value)
    if policy[word] ~= nil then return "is repeated" end
    policy[word] = value
  end
end

function ADD.factor(policy, qos, number)
  if policy.factors[qos] then return "is repeated" end
  policy.factors[qos] = number
end

function ADD.billed(policy, qos, billed)
  if policy.resources[qos] then return "is repeated" end
  policy.resources[qos] = billed
end

function ADD.exempt(policy, uid) policy.exempt[uid] = true end

function ADD.partition(
  policy, partition, billed, adding, denominator, memory, minutes, cpus, node_memory, sharing, most
)
  if policy.partitions[partition] then return "is repeated" end
  policy.partitions[partition] = {
    name = partition, resource = billed, adding = adding, denominator = denominator,
    memory_per_cpu = memory, default_minutes = minutes, node_cpus = cpus, most_cpus = most,
    node_memory = node_memory, whole_nodes = sharing == "exclusive", gpus = {}, node_gpus = {},
    weights = {},
  }
  table.insert(policy.partition_names, partition)
end

function ADD.gpu(policy, partition, type, number)
  local place = policy.partitions[partition]
  if not place then return "names no partition from above" end
  if place.node_gpus[type] then return "is repeated" end
  table.insert(place.gpus, type)
  place.node_gpus[type] = number
end

function ADD.weight(policy, partition, tres_name, number)
  if not policy.partitions[partition] then return "names no partition from above" end
  table.insert(policy.partitions[partition].weights, { name = tres_name, number = number })
end

function ADD.project(policy, group, gid, account, qos, members)
  if policy.by_gid[gid] or policy.by_account[account] then return "is repeated" end
  local project = {
    group = group, gid = gid, account = account, qos = nonempty(qos), members = members,
    available = {},
  }
  policy.by_gid[gid], policy.by_account[account] = project, project
  table.insert(policy.projects, project)
end

function ADD.short(policy, account, partition, reservation, first, over)
  if not policy.by_account[account] then return "names no account from above" end
  if partition ~= "" and not policy.partitions[partition] then
    return "names no partition from above"
  end
  table.insert(policy.short_terms, {
    account = account, partition = nonempty(partition), reservation = nonempty(reservation),
    first = first, over = over,
  })
end

function ADD.balance(policy, account, billed, available)
  local project = policy.by_account[account]
  if not project then return "names no account from above" end
  if project.available[billed] then return "is repeated" end
  project.available[billed] = available
end

local function split(line)
  local fields, from = {}, 1
  while true do
    local tab = line:find("\t", from, true)
    table.insert(fields, line:sub(from, (tab or 0) - 1))
    if not tab then return fields end
    from = tab + 1
  end
end

-- The header has a digest of the content: if the header is the same, so is the rest.
local function read_header(text)
  local line = text:match("^[^\n]*\n") or ""
  local version, written, digest =
    line:match("^fairbank%-policy\t([0-9]+)\t([0-9]+)\t([0-9a-f]+)\n$")
  if not version then return nil, "it does not begin as a policy file does" end
  if tonumber(version) ~= M.VERSION then
    local age = tonumber(version) < M.VERSION and "older" or "newer"
    return nil, "it is of the " .. age .. " version " .. version ..
      "; these plug-ins read version " .. M.VERSION ..
      ": install plug-ins and fairbank of the same release, then: fairbank slurm sync"
  end
  return { line = line, written = tonumber(written), digest = digest }
end

local function read_line(policy, line)
  local fields = split(line)
  local kind = table.remove(fields, 1)
  local readers = FIELDS[kind]
  if not readers then return "is of no known kind" end
  if #fields ~= #readers then return "has " .. #fields .. " fields, not " .. #readers end
  local values = {}
  for i, read in ipairs(readers) do
    values[i] = read(fields[i])
    if values[i] == nil then return "has a wrong field " .. i end
  end
  return ADD[kind](policy, (table.unpack or unpack)(values, 1, #readers))
end

-- Return true if the policy lists the user as a member of the project.
function M.has_member(project, uid)
  return uid ~= nil and project.members:find(string.format(" %.0f ", uid), 1, true) ~= nil
end

-- Return true if a short-term allocation of another account has this partition or reservation now:
-- it is then hidden from the job, and refused to it.
function M.is_closed(policy, field, value, account, now)
  for _, short in ipairs(policy.short_terms) do
    if short[field] == value and short.account ~= account and short.first <= now
      and now < short.over then
      return true
    end
  end
  return false
end

-- Return the value that all jobs of the account have in a field now, by a short-term allocation.
function M.forced_value(policy, field, account, now)
  for _, short in ipairs(policy.short_terms) do
    if short.account == account and short[field] and short.first <= now and now < short.over then
      return short[field]
    end
  end
  return nil
end

-- Return the policy in the text, or nil and the error.
function M.parse(text)
  local header, problem = read_header(text)
  if not header then return nil, problem end
  local policy = {
    written = header.written, digest = header.digest, header = header.line, factors = {},
    resources = {},
    exempt = {}, partitions = {}, partition_names = {}, by_gid = {}, by_account = {}, projects = {},
    short_terms = {},
  }
  local from, lines, has_end = #header.line + 1, 0, false
  while from <= #text do
    local stop = text:find("\n", from, true)
    if not stop then return nil, "its last line is cut off" end
    if has_end then return nil, "something follows its end" end
    local line = text:sub(from, stop - 1)
    if line:find("^end\t") then
      if line ~= "end\t" .. string.format("%d", lines) then return nil, "lines are missing" end
      has_end = true
    else
      lines = lines + 1
      problem = read_line(policy, line)
      if problem then
        return nil, "its line " .. string.format("%d", lines + 1) .. " " .. problem
      end
    end
    from = stop + 1
  end
  if not has_end then return nil, "its end is missing" end
  for _, word in ipairs(REQUIRED) do
    if policy[word] == nil then return nil, "it has no line " .. word end
  end
  return policy
end

-- Return the policy in the file, or nil and the error. If the file still has the content of
-- `cached`, that is returned without parsing.
function M.read(path, cached)
  local file, problem = io.open(path, "rb")
  if not file then return nil, "cannot open it: " .. tostring(problem) end
  local header = cached and file:read(#cached.header)
  if cached and header == cached.header then
    file:close()
    return cached
  end
  file:seek("set", 0)
  local text = file:read(M.SIZE_MAX + 1)
  file:close()
  if not text then return nil, "it is empty, or cannot be read" end
  if #text > M.SIZE_MAX then return nil, "it is longer than " .. M.SIZE_MAX .. " bytes" end
  return M.parse(text)
end

return M
