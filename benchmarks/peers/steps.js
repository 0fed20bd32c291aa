// The activation's *entitle* from Node: with XState and WATCH, MULTI, EXEC (`node steps.js xstate`), or by FCALL sb_fire
// (`node steps.js fcall ROOT`). Each line on stdin is `seconds key key ...`, each line on stdout `steps seconds tries`.
import readline from 'node:readline';
import { Redis } from 'ioredis';
import { assign, createMachine, transition } from 'xstate';

const TOKEN = 'MTOB1J';
const DAY = 86400;
const START = 1_700_000_000;
const PHASES = [START, START + 29 * DAY, START + 30 * DAY];
const PAYLOAD = JSON.stringify({ token: TOKEN });
const path = decodeURIComponent(process.env.BENCH_URL.replace('unix://', ''));
const redis = new Redis({ path, maxRetriesPerRequest: null });

const machine = createMachine({
    initial: 'Waiting',
    context: { token: TOKEN, failed: 0, expires: 0 },
    states: {
        Waiting: {
            on: {
                entitle: [
                    {
                        target: 'Active',
                        guard: ({ context, event }) => event.token === context.token,
                        actions: assign({ failed: 0, expires: ({ event }) => event.now + 28 * DAY }),
                    },
                    {
                        guard: ({ context }) => context.failed < 3,
                        actions: assign({ failed: ({ context }) => context.failed + 1 }),
                    },
                    { target: 'Suspended' },
                ],
            },
        },
        Active: {
            on: {
                entitle: [
                    {
                        guard: ({ context, event }) => context.expires >= event.now,
                        actions: assign({ failed: 0 }),
                    },
                    { target: 'Suspended', actions: assign({ failed: 0 }) },
                ],
            },
        },
        Suspended: { on: { entitle: { target: 'Waiting', actions: assign({ failed: 0 }) } } },
    },
});

async function stepByLibrary(key, now) {
    for (let tries = 1; ; tries += 1) {
        await redis.watch(key);
        const stored = JSON.parse(await redis.get(key));
        const snapshot = machine.resolveState({ value: stored.value, context: stored.context });
        const [next] = transition(machine, snapshot, { type: 'entitle', token: stored.context.token, now });
        const text = JSON.stringify({ value: next.value, context: next.context });
        if ((await redis.multi().set(key, text).exec()) !== null) return tries;
    }
}

async function stepByCall(key, now) {
    const words = [key, 'entitle', PAYLOAD, '', '', '', '', now * 1000];
    const reply = await redis.call('FCALL', 'sb_fire', 1, process.argv[3], ...words);
    if (reply[0] !== 'OK') throw new Error(`refused: ${reply}`);
    return 1;
}

const byLibrary = process.argv[2] === 'xstate';
const step = byLibrary ? stepByLibrary : stepByCall;
const first = JSON.stringify({ value: 'Waiting', context: { token: TOKEN, failed: 0, expires: 0 } });
for await (const line of readline.createInterface({ input: process.stdin })) {
    const [seconds, ...keys] = line.trim().split(' ');
    if (byLibrary) for (const key of keys) await redis.setnx(key, first);
    const turns = PHASES.flatMap((now) => keys.map((key) => [key, now]));
    const started = process.hrtime.bigint();
    const until = started + BigInt(Math.round(seconds * 1e9));
    let [done, tries] = [0, 0];
    while (process.hrtime.bigint() < until) {
        const at = keys.length > 1 ? done % turns.length : Math.floor(Math.random() * turns.length);
        tries += await step(...turns[at]);
        done += 1;
    }
    console.log(done, Number(process.hrtime.bigint() - started) / 1e9, tries);
}
process.exit(0);
