-- Price of a job, exactly as the bank computes it (src/fairbank/core/tres.py and
-- src/fairbank/bank/pricing.py): billing units as
-- Slurm adds them up, times the factor of the QOS, times minutes, rounded up once. A value is
-- q + r/d with whole numbers, because numbers are doubles in Lua 5.1 and 5.2.

local M = {}

local floor, fmod = math.floor, math.fmod

-- Return (q + r/d) * m. Digits of ten bits keep every product below 2^53, as d is at most 2^40.
local function times(q, r, d, m)
  q, r, m = q + 0.0, r + 0.0, m + 0.0
  local digits = {}
  repeat
    local low = fmod(m, 1024)
    table.insert(digits, low)
    m = (m - low) / 1024
  until m == 0
  local high, rest = 0.0, 0.0
  for i = #digits, 1, -1 do
    local sum = rest * 1024 + r * digits[i]
    rest = fmod(sum, d)
    high = high * 1024 + q * digits[i] + (sum - rest) / d
  end
  return high, rest
end

local function plus(q1, r1, q2, r2, d)
  local r = r1 + r2
  if r >= d then return q1 + q2 + 1, r - d end
  return q1 + q2, r
end

-- Return true for a TRES of which only the most expensive one counts (MAX_TRES).
local function counts_by_maximum(name, adding)
  if adding == "sum" then return false end
  return name == "cpu" or name == "mem" or name == "node"
    or (adding == "max_tres" and name:find("^gres/") ~= nil)
end

-- Return the billing units of these TRES, as q + r / partition.denominator.
function M.billing(partition, counts)
  local d = partition.denominator
  local q, r, max_q, max_r = 0, 0, 0, 0
  for _, weight in ipairs(partition.weights) do
    local count = counts[weight.name]
    if count and weight.name ~= "billing" then
      local low = fmod(weight.number + 0.0, d)
      local wq, wr = times((weight.number - low) / d, low, d, count)
      if not counts_by_maximum(weight.name, partition.adding) then
        q, r = plus(q, r, wq, wr, d)
      elseif wq > max_q or (wq == max_q and wr > max_r) then
        max_q, max_r = wq, wr
      end
    end
  end
  return plus(q, r, max_q, max_r, d)
end

-- Return the price in SU-minutes for a whole number of minutes.
function M.amount(policy, partition, counts, qos, minutes)
  local d = partition.denominator
  local q, r = M.billing(partition, counts)
  local factor = qos and policy.factors[qos]
  if factor then
    q, r = times(q, r, d, factor)
    local low = fmod(q, policy.scale)
    q, r, d = (q - low) / policy.scale, low * d + r, d * policy.scale
  end
  q, r = times(q, r, d, minutes)
  return r > 0 and q + 1 or q
end

-- Return the longest limit below `minutes` that `available` pays for; 0 if there is none.
function M.longest_limit(policy, partition, counts, qos, minutes, available)
  local low, high = 0, minutes
  while high - low > 1 do
    local middle = floor((low + high) / 2)
    if M.amount(policy, partition, counts, qos, middle) <= available then
      low = middle
    else
      high = middle
    end
  end
  return low
end

-- Return reduced counts that `available` pays for with the same limit, only for TRES that must be
-- reduced; nil if one of them would become 0.
function M.reduced_counts(policy, partition, counts, qos, minutes, available)
  local result, reduced = {}, {}
  for name, count in pairs(counts) do result[name] = count end
  local only_maximum = true
  for _, weight in ipairs(partition.weights) do
    local is_added = not counts_by_maximum(weight.name, partition.adding)
    if counts[weight.name] and is_added and weight.number > 0 then only_maximum = false end
  end
  local total = M.amount(policy, partition, counts, qos, minutes)
  for _, weight in ipairs(partition.weights) do
    local name, count = weight.name, counts[weight.name]
    if count and count > 0 and weight.number > 0 and name ~= "node" then
      -- Where only the most expensive TRES counts, each is reduced by its own price.
      local price = only_maximum and M.amount(policy, partition, { [name] = count }, qos, minutes)
        or total
      if price > available then
        result[name] = floor(count * (available / price))
        reduced[name] = result[name]
        if result[name] < 1 then return nil end
      end
    end
  end
  if available <= 0 or next(reduced) == nil then return nil end
  if M.amount(policy, partition, result, qos, minutes) > available then return nil end
  return reduced
end

return M
