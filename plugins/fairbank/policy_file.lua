-- The submission policy, read strictly from its file: data only, never executed. src/fairbank/slurm/policy_file.py writes it;
-- docs/decisions/0011-submission-policy-file.md says what is in it. For Lua 5.1 to 5.5, with no library.

local M = { VERSION = 1, SIZE_MAX = 4 * 1024 * 1024 }

local function matching(pattern, longest)
  return function(text)
    return #text <= longest and text:find(pattern) and text or nil
  end
end

local function one_of(...)
  local allowed = {}
  for _, word in ipairs({ ... }) do allowed[word] = true end
  return function(text) return allowed[text] and text or nil end
end

local function whole(text)
  return #text <= 17 and text:find("^%-?[0-9]+$") and tonumber(text) or nil
end

local name = matching("^[A-Za-z_][A-Za-z0-9_.-]*$", 64)
local kind = matching("^[a-z][a-z0-9_-]*$", 32)
local tres = matching("^[a-z][!-~]*$", 64)
local answer = one_of("refuse", "warn", "ignore")

local function count(text)
  local number = whole(text)
  return number and number >= 0 and number or nil
end

local function positive(text)
  local number = whole(text)
  return number and number >= 1 and number <= 2 ^ 40 and number or nil
end

-- Kept as they are, " 60601 60602 ": hardly anybody ever asks who they are.
local function uids(text) return text:find("^ [0-9 ]*$") and text or nil end

local function optional(text)
  if text == "" then return "" end
  return name(text)
end

-- What the fields of each kind of line are.
local COLUMNS = {
  cluster = { name }, price = { answer }, gres = { answer }, unlisted = { answer }, qos = { optional }, stale = { count },
  scale = { positive }, factor = { name, count }, exempt = { count },
  partition = { name, kind, one_of("sum", "max_tres", "max_tres_gres"), positive, count, count, count, count },
  gpu = { name, name }, weight = { name, tres, count },
  project = { name, count, name, optional, optional, optional, uids },
  balances = { one_of("told", "untold") }, balance = { name, kind, whole },
}

local NEEDED = { "cluster", "price", "gres", "unlisted", "qos", "stale", "scale", "balances" }

local function given(text) return text ~= "" and text or nil end

-- Where the values of a line go. Each returns a complaint, or nothing.
local INTO = {}

for _, word in ipairs(NEEDED) do
  INTO[word] = function(policy, value)
    if policy[word] ~= nil then return "stands twice" end
    policy[word] = value
  end
end

function INTO.factor(policy, qos, number)
  if policy.factors[qos] then return "stands twice" end
  policy.factors[qos] = number
end

function INTO.exempt(policy, uid) policy.exempt[uid] = true end

function INTO.partition(policy, partition, resource, adding, denominator, memory, minutes, cpus, node_memory)
  if policy.places[partition] then return "stands twice" end
  local place = {
    name = partition, resource = resource, adding = adding, denominator = denominator, memory_per_cpu = memory,
    default_minutes = minutes, node_cpus = cpus, node_memory = node_memory, gpus = {}, weights = {},
  }
  policy.places[partition] = place
  table.insert(policy.partitions, partition)
end

function INTO.gpu(policy, partition, type)
  if not policy.places[partition] then return "names no partition from above" end
  table.insert(policy.places[partition].gpus, type)
end

function INTO.weight(policy, partition, what, number)
  local place = policy.places[partition]
  if not place then return "names no partition from above" end
  table.insert(place.weights, { name = what, number = number })
end

function INTO.project(policy, group, gid, account, qos, partition, reservation, members)
  if policy.by_gid[gid] or policy.by_account[account] then return "stands twice" end
  if partition ~= "" and not policy.places[partition] then return "names no partition from above" end
  local project = {
    group = group, gid = gid, account = account, qos = given(qos), partition = given(partition), reservation = given(reservation),
    members = members, left = {},
  }
  policy.by_gid[gid], policy.by_account[account] = project, project
  table.insert(policy.projects, project)
end

function INTO.balance(policy, account, resource, available)
  local project = policy.by_account[account]
  if not project then return "names no account from above" end
  if project.left[resource] then return "stands twice" end
  project.left[resource] = available
end

local function fields_of(line)
  local fields, from = {}, 1
  while true do
    local tab = line:find("\t", from, true)
    table.insert(fields, line:sub(from, (tab or 0) - 1))
    if not tab then return fields end
    from = tab + 1
  end
end

-- The head identifies the content: when it is the same, so is the rest.
local function head_of(text)
  local head = text:match("^[^\n]*\n") or ""
  local version, written, digest = head:match("^fairbank%-policy\t([0-9]+)\t([0-9]+)\t([0-9a-f]+)\n$")
  if not version then return nil, "it does not begin as a policy file does" end
  if tonumber(version) ~= M.VERSION then
    return nil, "it has version " .. version .. ", these plug-ins read version " .. M.VERSION .. ": install those of the same release"
  end
  return { line = head, written = tonumber(written), digest = digest }
end

local function take(policy, line)
  local fields = fields_of(line)
  local verb = table.remove(fields, 1)
  local columns = COLUMNS[verb]
  if not columns then return "is of no known kind" end
  if #fields ~= #columns then return "has " .. #fields .. " fields, not " .. #columns end
  local values = {}
  for place, read in ipairs(columns) do
    values[place] = read(fields[place])
    if values[place] == nil then return "has a wrong field " .. place end
  end
  return INTO[verb](policy, (table.unpack or unpack)(values, 1, #columns))
end

-- Whether the user belongs to the project, as far as the policy tells.
function M.has_member(project, uid)
  return uid ~= nil and project.members:find(string.format(" %.0f ", uid), 1, true) ~= nil
end

-- The policy in the text; or nil and what is wrong with it.
function M.parse(text)
  local head, wrong = head_of(text)
  if not head then return nil, wrong end
  local policy = {
    written = head.written, digest = head.digest, head = head.line, factors = {}, exempt = {}, places = {}, partitions = {},
    by_gid = {}, by_account = {}, projects = {},
  }
  local from, lines, ended = #head.line + 1, 0, false
  while from <= #text do
    local stop = text:find("\n", from, true)
    if not stop then return nil, "its last line is cut off" end
    if ended then return nil, "something follows its end" end
    local line = text:sub(from, stop - 1)
    if line:find("^end\t") then
      if line ~= "end\t" .. string.format("%d", lines) then return nil, "lines are missing" end
      ended = true
    else
      lines = lines + 1
      local complaint = take(policy, line)
      if complaint then return nil, "its line " .. string.format("%d", lines + 1) .. " " .. complaint end
    end
    from = stop + 1
  end
  if not ended then return nil, "its end is missing" end
  for _, word in ipairs(NEEDED) do
    if policy[word] == nil then return nil, "it has no line " .. word end
  end
  return policy
end

-- The policy in the file: `known`, when that is what it still holds. Or nil and what is wrong.
function M.read(path, known)
  local file, why = io.open(path, "rb")
  if not file then return nil, "cannot open it: " .. tostring(why) end
  local head = known and file:read(#known.head)
  if known and head == known.head then
    file:close()
    return known
  end
  file:seek("set", 0)
  local text = file:read(M.SIZE_MAX + 1)
  file:close()
  if not text then return nil, "it is empty, or cannot be read" end
  if #text > M.SIZE_MAX then return nil, "it is longer than " .. M.SIZE_MAX .. " bytes" end
  return M.parse(text)
end

return M
