// BullMQ: finished jobs are not kept, everything else as it comes.
//     node bullmq.js work CONCURRENCY | many COUNT | paced COUNT MEAN | mixed COUNT SECONDS
// What produce.py and stamps.py do for the workers written in Python.
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';

const SLOW = -1n;
const BATCH = 500;
const options = { removeOnComplete: true, removeOnFail: true };

const path = decodeURIComponent(process.env.BENCH_URL.replace('unix://', ''));
const connection = new Redis({ path, maxRetriesPerRequest: null });

function work(concurrency) {
    const jobs = Number(process.env.BENCH_JOBS);
    const pairs = new BigInt64Array(jobs * 2);
    let started = 0;
    let warm = 0n;
    const spent = () => {
        const { user, system } = process.cpuUsage();
        return BigInt(user + system) * 1000n;
    };
    const note = (sent) => {
        if (started >= jobs) return;
        pairs[started * 2] = process.hrtime.bigint();
        pairs[started * 2 + 1] = sent;
        if (started === Math.floor(jobs / 10)) warm = spent();
        started += 1;
        if (started < jobs) return;
        const file = process.env.BENCH_STAMPS;
        fs.writeFileSync(`${file}.part`, Buffer.from(BigInt64Array.of(warm, spent()).buffer));
        fs.appendFileSync(`${file}.part`, Buffer.from(pairs.buffer));
        fs.renameSync(`${file}.part`, file);
    };
    const handler = async (job) => {
        const { sent, seconds } = job.data;
        note(seconds ? SLOW : BigInt(sent));
        if (seconds) await sleep(seconds * 1000);
    };
    const worker = new Worker('bench', handler, { connection, concurrency });
    process.on('SIGTERM', () => worker.close().then(() => process.exit(0)));
}

const queue = () => new Queue('bench', { connection, defaultJobOptions: options });

async function many(count) {
    const target = queue();
    for (let at = 0; at < count; at += BATCH) {
        const size = Math.min(BATCH, count - at);
        await target.addBulk(Array.from({ length: size }, () => ({ name: 'noop', data: { sent: '0' } })));
    }
}

async function paced(count, mean) {
    const target = queue();
    await target.waitUntilReady();
    for (let done = 0; done < count; done += 1) {
        await sleep(mean * (0.5 + Math.random()));
        await target.add('noop', { sent: String(process.hrtime.bigint()) });
    }
}

async function mixed(count, seconds) {
    const first = Math.floor(count / 10);
    await many(first);
    await queue().add('noop', { seconds });
    await many(count - first);
}

const [, , order, ...given] = process.argv;
if (order === 'work') {
    work(...given.map(Number));
} else {
    await { many, paced, mixed }[order](...given.map(Number));
    process.exit(0);
}
