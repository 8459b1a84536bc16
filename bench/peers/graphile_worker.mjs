// graphile-worker's part that is JavaScript: with the argument `work` a worker, with `client` what enqueues.
//
// The client obeys one order a line, as JSON, and answers each with a line of JSON once it is carried out. Both speak to
// the database that DATABASE_URL names, and say on stderr what they have to say.

import { openSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

process.env.NO_LOG_SUCCESS = "1"; // or it has a line to say of every job

// Packages are looked for beside the interpreter, which is one of them, and not beside this file.
const { Logger, makeWorkerUtils, run } = await import(createRequire(process.execPath).resolve("graphile-worker"));

const NANOSECONDS = 1e9;
const TASK = "record";

const preset = {
  worker: {
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
    pollInterval: 100, // milliseconds between looks for jobs that fall due; 2,000 by default
    logger: new Logger(() => (level, message) => ["warning", "error"].includes(level) && console.error(message)),
  },
};

const work = async () => {
  const ledger = openSync(process.env.BENCH_LEDGER, "a", 0o600);
  const taskList = {
    [TASK]: ({ number }) => {
      const entry = Buffer.alloc(24); // as `ledger.py` packs it
      entry.writeBigInt64LE(BigInt(number), 0);
      entry.writeBigInt64LE(BigInt(process.pid), 8);
      entry.writeDoubleLE(Number(process.hrtime.bigint()) / NANOSECONDS, 16);
      writeSync(ledger, entry);
    },
  };
  const runner = await run({ preset, taskList, parsedCronItems: [] });
  await runner.promise;
};

const client = async () => {
  const utils = await makeWorkerUtils({ preset });
  const orders = {
    migrate: () => utils.migrate(),
    each: async ({ numbers }) => {
      for (const number of numbers) await utils.addJob(TASK, { number });
    },
    bulk: ({ numbers }) => utils.addJobs(numbers.map((number) => ({ identifier: TASK, payload: { number } }))),
    at: ({ numbers, due }) => utils.addJob(TASK, { number: numbers[0] }, { runAt: new Date(due) }),
  };
  for await (const line of createInterface({ input: process.stdin })) {
    const order = JSON.parse(line);
    await orders[order.do](order);
    console.log("{}");
  }
  await utils.release();
};

await { work, client }[process.argv[2]]();
