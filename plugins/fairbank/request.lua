-- What somebody asks for, in Slurm's many spellings, and what the job would hold at least: the counts that are priced.

local M = {}

local FOREVER = 1e6 * 1440 -- a longer time limit in minutes is Slurm's way to say that none was given

-- Minutes of "30", "30:00", "2:00:00", "1-12", "1-12:30", "1-12:30:00"; math.huge for no limit; nil when none is given.
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
  if minutes > FOREVER then return nil end
  return minutes
end

-- As `--time` takes it.
function M.limit(minutes)
  local rest = math.fmod(minutes, 1440)
  local hours = math.floor(rest / 60)
  local days = (minutes - rest) / 1440
  local clock = string.format("%02.0f:%02.0f:00", hours, rest - hours * 60)
  return days > 0 and string.format("%.0f-", days) .. clock or (clock:gsub("^0", ""))
end

local SCALE = { K = 1 / 1024, M = 1, G = 1024, T = 1024 * 1024 }

-- MiB of "4G"; nil when none is given.
function M.mebibytes(text)
  local number, suffix = (text or ""):match("^(%d+)([KMGT]?)")
  return number and math.ceil(tonumber(number) * SCALE[suffix == "" and "M" or suffix]) or nil
end

-- The GPUs in "gpu:a100:2", "gres:gpu:2", "gres/gpu=2" or, of an option for GPUs alone, "a100:2"; added to `found`.
function M.gpus(text, per, found, alone)
  for part in (text or ""):gmatch("[^,]+") do
    local words = {}
    for word in part:gsub("%(.*$", ""):gsub("^gres[:/]", ""):gmatch("[^:=]+") do table.insert(words, word) end
    if alone or table.remove(words, 1) == "gpu" then
      local last = words[#words]
      local count = last and last:match("^(%d+)[kKmM]?$") and tonumber(last:match("^%d+"))
      if count then table.remove(words) end
      if count ~= 0 then table.insert(found, { type = words[1], count = count or 1, per = per }) end
    end
  end
  return found
end

local function all_gpus(job, nodes)
  local sum, by_type = 0, {}
  for _, each in ipairs(job.gpus) do
    local count = each.count * (each.per == "node" and nodes or each.per == "task" and math.max(job.tasks or 1, 1) or 1)
    sum = sum + count
    if each.type then by_type[each.type] = (by_type[each.type] or 0) + count end
  end
  return sum, by_type
end

local function memory(job, place, cpus, nodes, gpus)
  local asked = job.memory
  if not asked then return cpus * place.memory_per_cpu end
  if asked.mib == 0 then return nodes * place.node_memory end
  return asked.mib * (asked.per == "cpu" and cpus or asked.per == "gpu" and gpus or nodes)
end

-- How much of each TRES the job holds at least, as far as its submission tells. Memory in MiB.
function M.counts(job, place)
  local nodes = math.max(job.nodes or 1, 1)
  local cpus = math.max(job.cpus or 1, nodes)
  if place.node_cpus > 0 then nodes = math.max(nodes, math.ceil(cpus / place.node_cpus)) end
  local gpus, by_type = all_gpus(job, nodes)
  cpus = math.max(cpus, (job.cpus_per_gpu or 0) * gpus)
  local held = cpus
  if job.whole_nodes and place.node_cpus > 0 then held = nodes * place.node_cpus end
  local counts = { cpu = held, node = nodes, mem = memory(job, place, held, nodes, gpus) }
  if gpus > 0 then
    counts["gres/gpu"] = gpus
    if next(by_type) == nil and #place.gpus == 1 then by_type[place.gpus[1]] = gpus end
    for type, count in pairs(by_type) do counts["gres/gpu:" .. type] = count end
  end
  return counts
end

return M
