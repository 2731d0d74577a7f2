// graphile-worker with its local queue and its batching, or with BENCH_BATCH as it is without them.
import { createRequire } from "node:module";
import { mark, now, pickUp } from "./board.mjs";

const { run, makeWorkerUtils, Logger } = createRequire(`${process.env.BENCH_NODE}/`)("graphile-worker");
const BULK = 1000;
const connectionString = process.env.BENCH_URL;
const logger = new Logger(() => () => {});
const batched = { concurrentJobs: 200, localQueue: { size: 1000 }, completeJobBatchDelay: 1, failJobBatchDelay: 1 };
const settings = process.env.BENCH_BATCH ? { concurrentJobs: 24 } : batched;
const [command, argument] = process.argv.slice(2);
const count = Number(argument);

async function work() {
  const worker = { connectionString, pollInterval: 2000, maxPoolSize: settings.concurrentJobs + 2, ...settings };
  const runner = await run({ preset: { worker }, logger, taskList: { noop: async ({ t }) => mark(t) } });
  await runner.promise;
}

async function timed(utils, each) {
  const began = now();
  await each(utils);
  return { per_second: count / (now() - began) };
}

const commands = {
  prepare: (utils) => utils.migrate(),
  one: async (utils) => {
    await utils.addJob("noop", { t: 0 });
    return timed(utils, async () => {
      for (let number = 0; number < count; number++) await utils.addJob("noop", { t: 0 });
    });
  },
  bulk: (utils) =>
    timed(utils, async () => {
      for (let start = 0; start < count; start += BULK) {
        const length = Math.min(BULK, count - start);
        await utils.addJobs(Array.from({ length }, () => ({ identifier: "noop", payload: { t: 0 } })));
      }
    }),
  "pick-up": (utils) => pickUp(count, (t) => utils.addJob("noop", { t })),
};

if (command === "work") {
  await work();
} else {
  const utils = await makeWorkerUtils({ connectionString, logger });
  const answer = await commands[command](utils);
  await utils.release();
  process.stdout.write(JSON.stringify(answer ?? {}) + "\n");
}
