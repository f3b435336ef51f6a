-- Resource requests in Slurm's notations, and the TRES that a job holds at least.

local M = {}

local NO_LIMIT = 1e6 * 1440 -- minutes; Slurm passes a larger value if no time limit was given

-- Return the minutes of "30", "30:00", "2:00:00", "1-12", "1-12:30" or "1-12:30:00", with seconds
-- rounded up; math.huge for no limit, nil if none is given.
function M.minutes(text)
  if text == nil then return nil end
  if text == "UNLIMITED" or text == "INFINITE" or text == "-1" then return math.huge end
  local days, rest = text:match("^(%d+)%-(.+)$")
  local parts = {}
  for number in (rest or text):gmatch("%d+") do table.insert(parts, tonumber(number)) end
  local a, b, c = parts[1] or 0, parts[2] or 0, parts[3] or 0
  local minutes
  if days then
    minutes = tonumber(days) * 1440 + a * 60 + b + (c > 0 and 1 or 0)
  elseif #parts == 3 then
    minutes = a * 60 + b + (c > 0 and 1 or 0)
  else
    minutes = a + (b > 0 and 1 or 0)
  end
  if minutes > NO_LIMIT then return nil end
  return minutes
end

-- Return minutes as the value of --time.
function M.time_option(minutes)
  local rest = math.fmod(minutes, 1440)
  local hours = math.floor(rest / 60)
  local days = (minutes - rest) / 1440
  local clock = string.format("%02.0f:%02.0f:00", hours, rest - hours * 60)
  return days > 0 and string.format("%.0f-", days) .. clock or (clock:gsub("^0", ""))
end

local MIB = { K = 1 / 1024, M = 1, G = 1024, T = 1024 * 1024 }

-- Return the MiB of "4G", rounded up; nil if none is given.
function M.mebibytes(text)
  local number, suffix = (text or ""):match("^(%d+)([KMGT]?)")
  return number and math.ceil(tonumber(number) * MIB[suffix == "" and "M" or suffix]) or nil
end

local FACTORS = { [""] = 1, k = 2 ^ 10, m = 2 ^ 20, g = 2 ^ 30, t = 2 ^ 40, p = 2 ^ 50 }

-- Return the number of "2" or "4K", or nil: "2080ti" and "1g.10gb" are types.
local function gres_count(word)
  local number, suffix = word:lower():match("^(%d+)([kmgtp]?)$")
  return number and tonumber(number) * FACTORS[suffix]
end

-- Add the GPUs in "gpu:a100:2", "gres:gpu:2" or "gres/gpu=2" to the list; with `gpus_only` in
-- "a100:2", the value of an option for GPUs. `per` is the unit of the count.
-- src/fairbank/core/gres.py reads the same forms.
function M.add_gpus(list, text, per, gpus_only)
  for part in (text or ""):gsub("%b()", ""):gmatch("[^,]+") do
    local words = {}
    for word in part:gsub("^gres[:/]", ""):gmatch("[^:=]+") do
      if word ~= "no_consume" then table.insert(words, word) end
    end
    if gpus_only or table.remove(words, 1) == "gpu" then
      local count = gres_count(words[#words] or "")
      if count then table.remove(words) end
      if count ~= 0 then
        table.insert(list, { type = words[1], count = count or 1, per = per })
      end
    end
  end
  return list
end

local function gpu_counts(job, nodes)
  local sum, by_type = 0, {}
  for _, gpu in ipairs(job.gpus) do
    local factor = gpu.per == "node" and nodes or gpu.per == "task" and math.max(job.tasks or 1, 1)
      or 1
    local count = gpu.count * factor
    sum = sum + count
    local type = gpu.type and gpu.type:lower() -- as the bank spells TRES
    if type then by_type[type] = (by_type[type] or 0) + count end
  end
  return sum, by_type
end

local function memory(job, partition, cpus, nodes, gpus)
  local requested = job.memory
  if not requested then return cpus * partition.memory_per_cpu end
  if requested.mib == 0 then return nodes * partition.node_memory end
  local units = requested.per == "cpu" and cpus or requested.per == "gpu" and gpus or nodes
  return requested.mib * units
end

-- Add all GPUs of whole nodes to the counts by type, and return how many there are of any type.
local function add_whole_nodes(partition, nodes, gpus, by_type)
  local all = 0
  for _, type in ipairs(partition.gpus) do
    local count, name = nodes * partition.node_gpus[type], type:lower()
    all = all + count
    if type ~= "any" and count > 0 then by_type[name] = math.max(by_type[name] or 0, count) end
  end
  return math.max(gpus, all)
end

-- Return the smallest count of each TRES that the job can hold. Memory is in MiB.
function M.counts(job, partition)
  local nodes = math.max(job.nodes or 1, 1)
  if job.tasks and job.tasks_per_node then
    nodes = math.max(nodes, math.ceil(job.tasks / job.tasks_per_node))
  end
  local cpus = math.max(job.cpus or 1, nodes)
  if partition.most_cpus > 0 then
    nodes = math.max(nodes, math.ceil(cpus / partition.most_cpus))
  end
  local gpus, by_type = gpu_counts(job, nodes)
  cpus = math.max(cpus, (job.cpus_per_gpu or 0) * gpus)
  local only = #partition.gpus == 1 and partition.gpus[1] or "any"
  if gpus > 0 and only ~= "any" and next(by_type) == nil then by_type[only:lower()] = gpus end
  if (job.whole_nodes or partition.whole_nodes) and partition.node_cpus > 0 then
    cpus = math.max(cpus, nodes * partition.node_cpus)
    gpus = add_whole_nodes(partition, nodes, gpus, by_type)
  end
  local counts = { cpu = cpus, node = nodes, mem = memory(job, partition, cpus, nodes, gpus) }
  if gpus > 0 then
    counts["gres/gpu"] = gpus
    for type, count in pairs(by_type) do counts["gres/gpu:" .. type] = count end
  end
  return counts
end

return M
