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

-- SU-minutes as src/fairbank/core/units.py shows them in sentences: SU with commas between
-- thousands, and with two decimals if not whole.
function M.su(minutes)
  local size = floor((math.abs(minutes) * 5 + 1) / 3)
  local rest = fmod(size, 100)
  local text = string.format(minutes < 0 and "-%.0f" or "%.0f", (size - rest) / 100)
  local commas
  repeat
    text, commas = text:gsub("^(-?%d+)(%d%d%d)", "%1,%2")
  until commas == 0
  return rest > 0 and text .. string.format(".%02.0f", rest) or text
end

-- The shortfall: 0 if the amount is available.
function M.shortfall(amount, available) return M.su(math.max(0, amount - available)) end

return M
