-- Lists as people read them.

local M = {}

function M.joined(words, between)
  return #words < 2 and (words[1] or "") or table.concat(words, ", ", 1, #words - 1) .. between .. words[#words]
end

function M.options(option, words)
  local typed = {}
  for place, word in ipairs(words) do typed[place] = option .. word end
  return M.joined(typed, " or ")
end

return M
