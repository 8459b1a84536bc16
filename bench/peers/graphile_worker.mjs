// graphile-worker's part that is JavaScript: with the argument `work` a worker, with `client` what enqueues.
//
// The client takes one order a line, as JSON, and answers each with the time at which it was carried out. Both use the
// database that DATABASE_URL names, and say on stderr what goes wrong.

import { openSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

process.env.NO_LOG_SUCCESS = "1"; // or it words a line for every job

// The interpreter is one of the packages, so the others are found from it; from this file they are not.
const { Logger, makeWorkerUtils, run } = await import(createRequire(process.execPath).resolve("graphile-worker"));

const TASK = "record";

// The batching is what its own performance tests use. A larger local queue looked faster in short drains only, where its
// first batch, claimed before the clock runs, is a larger part.
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

// Its client's `addJobs` calls the same function of its SQL, but has every job sent back, which takes as long again.
const ADD_JOBS = `
  select 1 from graphile_worker.add_jobs(
    array(select json_populate_recordset(null::graphile_worker.job_spec, $1::json))
  )`;

const work = async () => {
  const ledger = openSync(process.env.BENCH_LEDGER, "a", 0o600);
  const entry = new Uint8Array(24); // laid out as in `ledger.py`
  const [number, pid] = [new BigInt64Array(entry.buffer, 0, 1), new BigInt64Array(entry.buffer, 8, 1)];
  const seconds = new Float64Array(entry.buffer, 16, 1);
  pid[0] = BigInt(process.pid);
  const record = (payload) => {
    number[0] = BigInt(payload.number);
    seconds[0] = Number(process.hrtime.bigint()) / 1e9;
    writeSync(ledger, entry);
  };
  const runner = await run({ preset, taskList: { [TASK]: record }, parsedCronItems: [] });
  await runner.promise;
};

const client = async () => {
  const utils = await makeWorkerUtils({ preset });
  const orders = {
    migrate: () => utils.migrate(),
    each: async ({ numbers }) => {
      for (const number of numbers) await utils.addJob(TASK, { number });
    },
    bulk: ({ numbers }) => {
      const jobs = numbers.map((number) => ({ identifier: TASK, payload: { number } }));
      return utils.withPgClient((connection) => connection.query(ADD_JOBS, [JSON.stringify(jobs)]));
    },
    at: ({ numbers: [number], due }) => utils.addJob(TASK, { number }, { runAt: new Date(due) }),
  };
  for await (const line of createInterface({ input: process.stdin })) {
    const order = JSON.parse(line);
    await orders[order.do](order);
    console.log(Number(process.hrtime.bigint()) / 1e9); // when, on the clock that the ledger is written by
  }
  await utils.release();
};

await { work, client }[process.argv[2]]();
