-- needs: arguments, chart, deletion, instances, previews, repairs, replies, timers
-- sb_delete: deletes an instance, its history, index entries, timers and jobs, and the children it invoked.
-- KEYS:    1 root of the partition
-- ARGV:    1 id · 2 expect (revision or '') · 3 actor · 4 reason · 5 'dry' for a preview, or '' · 6 permit (as sb_fire)
-- Returns: {OK, '', '0', instance JSON} the instance before, or {OK, preview JSON} · {CONFLICT, revision} · {APPROVAL, ...}
--          as sb_fire · {NOINSTANCE} · {NOMACHINE} · {BADARG, why} · {FAULT, why}
-- Notifies: <root>:pulse, at most once in 50 ms
-- Cost:    O(its history + log(instances in the state))
return function(KEYS, ARGV)
    local root, id, expect = KEYS[1], ARGV[1], ARGV[2] or ''
    arguments.refuse(arguments.check_present(id, 'the id') or arguments.check(expect, '', ARGV[3] or '', ARGV[4] or '', ''))
    local ctx = instances.demand(root, id, arguments.read_now(''), expect)
    if (ARGV[5] or '') ~= '' then
        chart.stop_children(ctx)
        timers.clear(ctx)
        return previews.build_reply(ctx, true)
    end
    repairs.demand_approval(ctx, 'delete', ARGV[6] or '', ARGV[3] or '')
    deletion.delete(ctx, ARGV[3] or '', ARGV[4] or '', false)
    return replies.build_instance(ctx)
end
