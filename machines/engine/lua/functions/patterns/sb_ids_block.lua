-- needs: arguments, pattern_keys, replies
-- sb_ids_block: hands out the next whole numbers of a sequence, each once.
-- KEYS:    1 root of the sequence
-- ARGV:    1 how many (1 to 1000000) · 2 the first number that, as far as the caller knows, is not handed out (1 to 2^53)
-- Returns: {OK, 1, first}: the block is [first, first + how many) · {OK, 0, how many are left}: too few below 2^53 ·
--          {BADARG, why} · {FAULT, why}
-- Notifies: nothing
-- Cost:    O(1)
local MAX_SIZE, MAX_EXACT = 1000000, 2 ^ 53

return function(KEYS, ARGV)
    local size = arguments.need_count('how many numbers', ARGV[1], 1, MAX_SIZE)
    local known = arguments.need_count('known', ARGV[2], 1, MAX_EXACT)
    local key = pattern_keys.block_next(KEYS[1])
    local kept = arguments.parse_whole(redis.call('GET', key) or '1')
    if not kept or kept < 1 then return { replies.FAULT, 'the sequence holds no number' } end
    local first = math.max(kept, known) -- a server that lost its latest writes knows less than the callers
    if first > MAX_EXACT - size then return { replies.OK, 0, MAX_EXACT - first } end
    redis.call('SET', key, string.format('%.0f', first + size))
    return { replies.OK, 1, first }
end
