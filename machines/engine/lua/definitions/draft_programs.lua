-- needs: arguments, programs
-- Programs that are not published: for replays, simulations and checks.
local draft_programs = {}

local MAX_KEPT = 16
local kept, count = {}, 0

local function compile(root, text)
    local name = root .. redis.sha1hex(text)
    if kept[name] then return kept[name] end
    programs.check_work(cjson.decode(text), root)
    local compiled = programs.compile(cjson.decode(text), 0, root, '0:0', '')
    if count >= MAX_KEPT then kept, count = {}, 0 end
    kept[name], count = compiled, count + 1
    return compiled
end

-- Compiles a program from its JSON; ends the call with BADARG when it is broken.
function draft_programs.compile(root, text)
    local ok, found = pcall(compile, root, text)
    local why = type(found) == 'table' and found.sb and ': ' .. found.sb or ''
    return arguments.need(ok and found, 'the program cannot be compiled' .. why)
end

return draft_programs
