// What the worker runs: the `src` of an invoke -> a function of its input and its job. What it returns is `event.result` of
// onDone; what it throws goes to the retries, and then to onError. `data` is that of the instance when the job was taken;
// `signal` is aborted when the job is no longer this worker's.
import { setTimeout as sleep } from 'node:timers/promises';

export const handlers = {
    async book_courier(input, { instance, data, signal }) {
        await sleep(Number(process.env.PACE ?? 0), undefined, { signal });
        if (data.weight > 30) throw new RangeError(`${instance} is too heavy for any courier`);
        return { courier: data.weight > 5 ? 'van' : 'bike' };
    },
};
