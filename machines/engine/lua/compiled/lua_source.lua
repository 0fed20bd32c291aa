-- Lua source that the library writes and loads.
local lua_source = {}

local format, byte, gsub = string.format, string.byte, string.gsub

-- Quotes a text as a Lua literal of one line.
function lua_source.quote(text)
    return '"' .. gsub(text, '[^%w _.,:;{}%[%]()<>=!?*+-]', function(letter) return format('\\%03d', byte(letter)) end) .. '"'
end

-- Loads a source that may use the names of some lists {name, value}. Answers what the source returns; throws where it
-- exceeds a limit of Lua.
function lua_source.load(source, ...)
    local names, given, count = {}, {}, 0
    for _, list in ipairs({ ... }) do
        for _, pair in ipairs(list) do
            count = count + 1
            names[count], given[count] = pair[1], pair[2]
        end
    end
    local head = count > 0 and 'local ' .. table.concat(names, ', ') .. ' = ...\n' or ''
    local chunk, why = loadstring(head .. source, '=written source')
    if not chunk then error(why, 0) end
    return chunk(unpack(given, 1, count))
end

return lua_source
