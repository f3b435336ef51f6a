-- What a job costs, exactly as the bank counts it (src/fairbank/bank/charge.py): weighted TRES added up as Slurm does, times the
-- factor of the QOS, times minutes, rounded up once. A value is q + r/d with whole numbers, since some Luas have nothing but doubles.

local M = {}

local floor, fmod = math.floor, math.fmod

-- (q + r/d) * m. Digits of ten bits keep every product below 2^53, as d is at most 2^40.
local function times(q, r, d, m)
  q, r, m = q + 0.0, r + 0.0, m + 0.0
  local digits = {}
  repeat
    local low = fmod(m, 1024)
    table.insert(digits, low)
    m = (m - low) / 1024
  until m == 0
  local high, rest = 0.0, 0.0
  for place = #digits, 1, -1 do
    local sum = rest * 1024 + r * digits[place]
    rest = fmod(sum, d)
    high = high * 1024 + q * digits[place] + (sum - rest) / d
  end
  return high, rest
end

local function plus(q1, r1, q2, r2, d)
  local r = r1 + r2
  if r >= d then return q1 + q2 + 1, r - d end
  return q1 + q2, r
end

local function competes(name, adding)
  if adding == "sum" then return false end
  return name == "cpu" or name == "mem" or name == "node" or (adding == "max_tres" and name:find("^gres/") ~= nil)
end

M.competes = competes

-- Billing units of what is held, as q + r / place.denominator.
function M.billing(place, counts)
  local d = place.denominator
  local q, r, most_q, most_r = 0, 0, 0, 0
  for _, weight in ipairs(place.weights) do
    local held = counts[weight.name]
    if held and weight.name ~= "billing" then
      local low = fmod(weight.number + 0.0, d)
      local wq, wr = times((weight.number - low) / d, low, d, held)
      if not competes(weight.name, place.adding) then
        q, r = plus(q, r, wq, wr, d)
      elseif wq > most_q or (wq == most_q and wr > most_r) then
        most_q, most_r = wq, wr
      end
    end
  end
  return plus(q, r, most_q, most_r, d)
end

-- SU-minutes for so many minutes, a whole number.
function M.amount(policy, place, counts, qos, minutes)
  local d = place.denominator
  local q, r = M.billing(place, counts)
  local factor = qos and policy.factors[qos]
  if factor then
    q, r = times(q, r, d, factor)
    local low = fmod(q, policy.scale)
    q, r, d = (q - low) / policy.scale, low * d + r, d * policy.scale
  end
  q, r = times(q, r, d, minutes)
  return r > 0 and q + 1 or q
end

-- The longest limit, in minutes below `minutes`, that `left` pays; 0 when none does.
function M.longest(policy, place, counts, qos, minutes, left)
  local low, high = 0, minutes
  while high - low > 1 do
    local middle = floor((low + high) / 2)
    if M.amount(policy, place, counts, qos, middle) <= left then low = middle else high = middle end
  end
  return low
end

-- The most of each that `left` pays with the same limit, for TRES that are too many now; nil when that would leave nothing of one.
function M.smaller(policy, place, counts, qos, minutes, left)
  local fewer, less = {}, {}
  for name, held in pairs(counts) do fewer[name] = held end
  local alone = true
  for _, weight in ipairs(place.weights) do
    if counts[weight.name] and not competes(weight.name, place.adding) and weight.number > 0 then alone = false end
  end
  local whole = M.amount(policy, place, counts, qos, minutes)
  for _, weight in ipairs(place.weights) do
    local name, held = weight.name, counts[weight.name]
    if held and held > 0 and weight.number > 0 and name ~= "node" then
      local price = alone and M.amount(policy, place, { [name] = held }, qos, minutes) or whole
      if price > left then
        fewer[name] = floor(held * (left / price))
        less[name] = fewer[name]
        if fewer[name] < 1 then return nil end
      end
    end
  end
  if left <= 0 or next(less) == nil or M.amount(policy, place, fewer, qos, minutes) > left then return nil end
  return less
end

-- Hundredths of a SU, cut off; with `down` never more than it is, also below zero.
local function hundredths(minutes, down)
  local parts = minutes * 100
  return (down or minutes >= 0) and floor(parts / 60) or -floor(-parts / 60)
end

local function written(shown)
  local size = math.abs(shown)
  local rest = fmod(size, 100)
  local text = string.format(shown < 0 and "-%.0f" or "%.0f", (size - rest) / 100)
  return rest > 0 and text .. string.format(".%02.0f", rest) or text
end

-- For people, as src/fairbank/core/units.py has it: SU with two decimals where it is not whole; with `down` never more than it is.
function M.show(minutes, down) return written(hundredths(minutes, down)) end

-- How much `left` lacks of `amount`, so that people can check it: the one less the other, as they are shown.
function M.show_short(amount, left) return written(math.max(0, hundredths(amount) - hundredths(left, true))) end

return M
