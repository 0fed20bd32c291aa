-- needs: arguments, replies
-- sb_permitted: names the commands of the library that the caller's account may not run.
-- flags:   no-writes
-- KEYS:    none
-- ARGV:    1 a key with the prefix in use; nothing is read or written there
-- Returns: {OK, command, ...} the denied ones, named as for ACL SETUSER · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(1)

-- Whole commands, `k` for the key: some servers crash on a check of an incomplete one.
local COMMANDS = {
    'EXISTS k', 'GET k', 'HGET k f', 'HGETALL k', 'HKEYS k', 'HLEN k', 'HMGET k f', 'LLEN k', 'LRANGE k 0 0', 'MGET k',
    'PFCOUNT k', 'PTTL k', 'SCARD k', 'SMEMBERS k', 'STRLEN k', 'SUNION k', 'TIME', 'TYPE k', 'XINFO CONSUMERS k g',
    'XINFO GROUPS k', 'XINFO STREAM k', 'XLEN k', 'XPENDING k g', 'XRANGE k - +', 'XREAD STREAMS k 0',
    'XREVRANGE k + -', 'ZCARD k', 'ZCOUNT k 0 0', 'ZLEXCOUNT k - +', 'ZRANGE k 0 0', 'ZRANGEBYLEX k - +',
    'ZRANGEBYSCORE k 0 0', 'ZREVRANGE k 0 0', 'ZREVRANGEBYLEX k + -', 'ZREVRANK k m', 'ZSCAN k 0', 'ZSCORE k m',
    'DECRBY k 1', 'DEL k', 'EXPIRE k 1', 'HDEL k f', 'HINCRBY k f 1', 'HSET k f v', 'HSETNX k f v', 'INCR k',
    'INCRBY k 1', 'LPUSH k v', 'LTRIM k 0 0', 'MSET k v', 'PERSIST k', 'PEXPIRE k 1', 'PFADD k v', 'RPOP k', 'RPUSH k v',
    'SADD k v', 'SET k v', 'UNLINK k', 'XACK k g 0-1', 'XADD k * f v', 'XAUTOCLAIM k g c 0 0', 'XCLAIM k g c 0 0-1',
    'XDEL k 0-1', 'XGROUP CREATE k g $', 'XGROUP DELCONSUMER k g c', 'XGROUP DESTROY k g', 'XGROUP SETID k g $',
    'XREADGROUP GROUP g c STREAMS k >', 'XTRIM k MAXLEN 0', 'ZADD k 0 m', 'ZREM k m',
    'ZREMRANGEBYRANK k 0 0', 'ZREMRANGEBYSCORE k 0 0', 'ZUNIONSTORE k 1 k', 'FCALL f 0', 'FCALL_RO f 0',
    'INFO', 'PING', 'SPUBLISH k v',
}
local CONTAINERS = { XGROUP = true, XINFO = true }

return function(_, ARGV)
    arguments.need(ARGV[1], 'a key is missing')
    local missing = { replies.OK }
    for _, example in ipairs(COMMANDS) do
        local words = {}
        for word in string.gmatch(example, '%S+') do words[#words + 1] = word == 'k' and ARGV[1] or word end
        if not redis.acl_check_cmd(unpack(words)) then
            local name = CONTAINERS[words[1]] and words[1] .. '|' .. words[2] or words[1]
            missing[#missing + 1] = string.lower(name)
        end
    end
    return missing
end
