// A worker for Node.js: takes jobs of one queue, renews their leases, completes or fails them (docs/other-languages.md).
//   REDIS_URL=redis://localhost:6379/0 node worker.mjs MACHINE QUEUE [HANDLERS]
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '@redis/client';

const [machine, queue, file = 'handlers.mjs'] = process.argv.slice(2);
const { handlers } = await import(resolve(file));
const { SIGNALBOX_PREFIX: prefix = 'sb:', LEASE = 30_000, GRACE = 20_000, AT_ONCE = 4, REDIS_URL: url } = process.env; // ms
const redis = createClient({ url }), bells = redis.duplicate(), held = new Map(); // held: job -> what is known of its lease
for (const client of [redis, bells]) await client.on('error', (error) => console.error(error.message)).connect();
const partitions = Number(await redis.hGet(`${prefix}machines`, machine)); // 0: no such machine is published
const roots = Array.from({ length: partitions }, (_, number) => `${prefix}{${machine}:${number}}`);
const call = (name, root, ...args) => redis.fCall(name, { keys: [root], arguments: args.map(String) });
let stopping = false, ring = () => {};
for (const root of roots) await bells.sSubscribe(`${root}:bells`, (text) => text === `job ${queue}` && ring());
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => { stopping = true; ring(); });

async function repeat(...words) { // for what a token fences: it may be sent again when its answer was lost
    for (;;) try { return await call(...words); } catch (error) { console.error(error.message); await sleep(500); }
}
async function run(root, job, pairs, token, data) {
    const fields = {}, lost = new AbortController();
    pairs.forEach((word, at) => { if (at % 2) fields[pairs[at - 1]] = word; });
    held.set(job, { root, token, lost });
    try {
        const context = { id: job, instance: fields.instance, data: JSON.parse(data || '{}'), signal: lost.signal };
        const result = await handlers[fields.src](JSON.parse(fields.input || 'null'), context);
        const [, end] = await repeat('sb_complete', root, '', '', job, token, JSON.stringify(result ?? null));
        if (end[0] !== 'OK' && end[0] !== 'LOST') throw new Error(end.join(' ')); // such as REFUSED by the machine
    } catch (error) { // a further attempt after the backoff, or dead
        await repeat('sb_fail', root, job, token, error.message, error.name, error.stack, 1, '');
    }
    held.delete(job);
    ring();
}
setInterval(async () => { // renews the leases; aborts jobs that are no longer this worker's
    for (const [job, { root, token, lost }] of held) {
        const [, word] = await call('sb_extend', root, '', LEASE, job, token).catch(() => ['', '1']);
        if (word !== '1') lost.abort(word);
    }
}, LEASE / 3);
while (!stopping) {
    const rung = new Promise((resolve) => { ring = resolve; }); // before the look: a bell that rings meanwhile counts
    for (const root of roots) {
        if (stopping || held.size >= AT_ONCE) break;
        const words = [queue, `${hostname()}:${process.pid}`, AT_ONCE - held.size, LEASE, '', process.hrtime.bigint(), 'hears'];
        const taken = await call('sb_take', root, ...words).catch((error) => [console.error(error.message)]);
        for (let at = 3; at < taken.length; at += 6) run(root, taken[at], taken[at + 1], taken[at + 2], taken[at + 5]);
    }
    await Promise.race([rung, sleep(5_000)]); // a bell may be lost
}
for (const until = Date.now() + Number(GRACE); held.size && Date.now() < until;) await sleep(50);
const back = [...held].map(([job, { root, token }]) => call('sb_fail', root, job, token, '', '', '', 'return', ''));
await Promise.race([Promise.allSettled(back), sleep(2_000)]); // handed back: the attempt is not counted
process.exit();
