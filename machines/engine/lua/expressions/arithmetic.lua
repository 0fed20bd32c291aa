-- needs: json, values, work_budget
-- The binary operators with Python's results: `+` also joins texts and lists, `%` takes the sign of the divisor.
local MAX_ITEMS = 10000

local function join_lists(a, b)
    if #a + #b > MAX_ITEMS then values.fail('a list longer than ' .. MAX_ITEMS) end
    work_budget.charge((#a + #b) * 0.4)
    local items = json.list()
    for i = 1, #a do items[i] = a[i] end
    for i = 1, #b do items[#a + i] = b[i] end
    return items
end

local function add(a, b)
    if type(a) == 'number' and type(b) == 'number' then return values.check_finite(a + b) end
    local ka, kb = values.kind_of(a), values.kind_of(b)
    if ka == kb and ka == 'string' then
        values.charge_join(#a + #b)
        return a .. b
    end
    if ka == kb and ka == 'array' then return join_lists(a, b) end
    values.fail('cannot add ' .. ka .. ' and ' .. kb)
end

local function check_divisor(value)
    if values.check_number(value) == 0 then values.fail('division by zero') end
    return value
end

-- Exact at any size, where a - floor(a / b) * b would round.
local function remainder(a, b)
    values.check_number(a)
    local rest = math.fmod(a, b)
    if rest ~= 0 and (rest < 0) ~= (b < 0) then return rest + b end
    return rest
end

return {
    ['+'] = add,
    ['-'] = function(a, b) return values.check_finite(values.check_number(a) - values.check_number(b)) end,
    ['*'] = function(a, b) return values.check_finite(values.check_number(a) * values.check_number(b)) end,
    ['/'] = function(a, b) return values.check_finite(values.check_number(a) / check_divisor(b)) end,
    ['//'] = function(a, b)
        local times = (values.check_number(a) - remainder(a, check_divisor(b))) / b
        local low = math.floor(times)
        return values.check_finite(times - low > 0.5 and low + 1 or low)
    end,
    ['%'] = function(a, b) return remainder(a, check_divisor(b)) end,
    ['**'] = function(a, b) return values.check_finite(values.check_number(a) ^ values.check_number(b)) end,
}
