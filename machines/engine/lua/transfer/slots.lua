-- The CRC-16/XMODEM of an id, which chooses its partition (crc16(id) % partitions) as it chooses the slot of a key on a cluster.
local slots = {}

local bxor, band, lshift, rshift, byte = bit.bxor, bit.band, bit.lshift, bit.rshift, string.byte

local TABLE = {}
for i = 0, 255 do
    local crc = lshift(i, 8)
    for _ = 1, 8 do
        crc = band(crc, 0x8000) ~= 0 and bxor(lshift(crc, 1), 0x1021) or lshift(crc, 1)
    end
    TABLE[i] = band(crc, 0xFFFF)
end

function slots.crc16(text)
    local crc = 0
    for i = 1, #text do
        crc = bxor(band(lshift(crc, 8), 0xFFFF), TABLE[bxor(rshift(crc, 8), byte(text, i))])
    end
    return crc
end

-- Answers the number of the partition that a root names; nil for a root without one.
function slots.get_number(root)
    return tonumber(string.match(root, ':(%d+)}$'))
end

return slots
