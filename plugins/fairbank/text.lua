-- Text for messages: lists and amounts.

local M = {}

local floor, fmod = math.floor, math.fmod

function M.join(words, conjunction)
  if #words < 2 then return words[1] or "" end
  return table.concat(words, ", ", 1, #words - 1) .. conjunction .. words[#words]
end

-- Return a name as it is typed in a shell. Names contain no quotes.
function M.shell_word(name)
  return name:find("[^%w_@%%+=:./-]") and "'" .. name .. "'" or name
end

-- "--gpus=a100, --gpus=t4 or --gpus=v100"
function M.options(option, values)
  local options = {}
  for i, value in ipairs(values) do options[i] = option .. M.shell_word(value) end
  return M.join(options, " or ")
end

-- Hundredths of an SU, rounded up, or `down`.
local function hundredths(minutes, down)
  local parts = minutes * 100
  return down and floor(parts / 60) or -floor(-parts / 60)
end

local function format_hundredths(number)
  local size = math.abs(number)
  local rest = fmod(size, 100)
  local text = string.format(number < 0 and "-%.0f" or "%.0f", (size - rest) / 100)
  return rest > 0 and text .. string.format(".%02.0f", rest) or text
end

-- SU-minutes as src/fairbank/core/units.py shows them: SU, with two decimals if not whole.
function M.su(minutes, down) return format_hundredths(hundredths(minutes, down)) end

-- The shortfall, so that readers can check it: the difference of the two amounts as shown.
function M.shortfall(amount, available)
  return format_hundredths(math.max(0, hundredths(amount) - hundredths(available, true)))
end

return M
