import assert from "node:assert/strict";
import { test } from "node:test";
import { runsCsv } from "../../src/page/keep/files.ts";
import { Delays } from "../../src/page/run/delays.tsx";
import { local } from "../engine/local.ts";
import { rows } from "./rows.ts";

const { engine } = await local();
const scenarios = await engine.scenarios();
const toml = (scenarios["lan-epd"] ?? "").replace(/^duration = .*$/m, 'duration = "200ms"');

async function answered(text: string, delays: boolean) {
  const { answer, unmet } = await engine.run(text, 1, { delays });
  return { seed: 1, answer, unmet };
}

test("the tables show the delays at ports and of connections, with the numbers of the answer", async () => {
  const run = await answered(toml, true);
  const table = rows(Delays({ runs: [run] }));
  const port = run.answer.ports.find((one) => one.name === run.answer.bottleneck);
  const flow = run.answer.flows[0];
  assert.ok(port !== undefined && flow !== undefined);
  const text = (value: unknown): string => Number(value).toPrecision(3);
  const measures = ["mean", "p50", "p95", "p99", "p999"];
  assert.deepEqual(table[0], ["port", "mean", "median", "95 %", "99 %", "99.9 %"]);
  assert.deepEqual(
    table.find(([name]) => name === port.name)?.slice(1, 5),
    measures.slice(0, 4).map((of) => text(port[`delay_ms_${of}`])),
  );
  const roundTrip = table.find(([name]) => name === `${flow.name}, RTT`);
  assert.deepEqual(roundTrip?.slice(1, 3), ["mean", "p50"].map((of) => text(flow[`rtt_ms_${of}`])));
  const oneWay = table.find(([name]) => name === `${flow.name}, one way`);
  assert.equal(oneWay?.at(-1), text(flow["jitter_ms"]));
  assert.match(runsCsv([run], "ports"), /delay_ms_p99/);
});

test("the table lists the bottleneck even if its buffer has no limit", async () => {
  const policy = /^\[port\.bottleneck\.policy\.epd\]\nthreshold.*$/m;
  const text = toml.replace(/^buffer = .*$/m, 'buffer = "infinite"').replace(policy, "[port.bottleneck.policy.tail_drop]");
  const run = await answered(text, true);
  assert.equal(run.answer.ports.find((one) => one.name === run.answer.bottleneck)?.["buffer_cells"], null);
  assert.ok(rows(Delays({ runs: [run] })).some(([name]) => name === run.answer.bottleneck));
});

test("a run without delays has no tables of delays and the same fingerprint", async () => {
  const [without, measured] = [await answered(toml, false), await answered(toml, true)];
  assert.equal(Delays({ runs: [without] }), null);
  assert.equal(without.answer.fingerprint, measured.answer.fingerprint);
});

test("queues of a scheduler have their own table", async () => {
  const text = (scenarios["lan-per-vc-queuing"] ?? "").replace(/^duration = .*$/m, 'duration = "200ms"');
  const run = await answered(text, true);
  const queue = run.answer.queues.find((one) => one.name === "sw1->sw2/tcp1");
  assert.ok(queue !== undefined, run.answer.queues.map((one) => one.name).join());
  const row = rows(Delays({ runs: [run] })).find(([name]) => name === queue.name);
  assert.equal(row?.[2], Number(queue["delay_ms_p50"]).toPrecision(3));
});
