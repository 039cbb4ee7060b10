-- Takes one request off one key's quota, by the generic cell rate algorithm: the same steps as `QuotaState::take`
-- in crates/model/src/quota.rs, with one clock for all servers, Redis's own.
--
-- KEYS[1]  the state: the time that is owed, in nanoseconds, and when that was, in microseconds since 1970
-- ARGV[1]  the time that one request costs, in nanoseconds
-- ARGV[2]  the time that may be owed at most, in nanoseconds
-- Returns  1 where the request is granted, else 0; and the time that is owed then
--
-- All numbers are whole and below 2^53, so Lua keeps them exactly.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local cost, most = tonumber(ARGV[1]), tonumber(ARGV[2])
local owed = 0
local state = redis.call('GET', KEYS[1])
if state then
  local then_owed, at = string.match(state, '^(%d+) (%d+)$')
  if then_owed then
    -- A clock that was put back pays nothing off, and keeps nobody waiting for the time to come again.
    owed = math.max(0, tonumber(then_owed) - math.max(0, now - tonumber(at)) * 1000)
    -- The quota may have been a more generous one.
    owed = math.min(owed, most)
  end
end
local granted = 0
if owed + cost <= most then
  granted = 1
  owed = owed + cost
end
-- Gone when nothing is owed any more: no state says the same.
local expiry = string.format('%.0f', math.ceil(owed / 1000000) + 1)
redis.call('SET', KEYS[1], string.format('%.0f %.0f', owed, now), 'PX', expiry)
return {granted, owed}
