import assert from "node:assert/strict";
import { test } from "node:test";
import { haveRequests } from "../../src/page/compare/requests.tsx";
import { runsCsv } from "../../src/page/keep/files.ts";
import { partName, partsOf, statisticsOf, tooFew, valuesOf } from "../../src/page/parts/requests.ts";
import { RequestResults, logAxis } from "../../src/page/run/requests.tsx";
import type { Done } from "../../src/page/state.ts";
import { local } from "../engine/local.ts";
import { rows } from "./rows.ts";

const { engine } = await local();
const scenarios = await engine.scenarios();
const toml = (scenarios["leaf-spine-web-search"] ?? "").replace(/^name = .*$/m, 'name = "requests"').replace('until = "finished"\n\n[measure]\nto = "20ms"\n', "").replace('"200ms"', '"20ms"');

async function runs(text: string, seeds: readonly number[]): Promise<Done[]> {
  const done: Done[] = [];
  for (const seed of seeds) {
    done.push({ seed, ...(await engine.run(text, seed, { requests: true })) });
  }
  return done;
}

const two = await runs(toml, [1, 2]);

test("request tables list each group, and each statistic or the reason why it is missing", () => {
  const [first] = two;
  assert.ok(first !== undefined);
  const table = rows(RequestResults({ runs: [first], over: "one run" }));
  const [web, query] = first.answer.requests;
  assert.ok(web !== undefined && query !== undefined);
  assert.deepEqual(table[0], ["group", "opened", "completed", "still open", "goodput Mb/s", "timeouts per request"]);
  assert.deepEqual(table[1]?.slice(0, 4), ["web", String(web.opened), String(web.completed), String(web.open)]);
  const row = (name: string, nth: number): string[] => table.filter((cells) => cells[0] === name)[nth] ?? [];
  const short = row("web, short", 0);
  assert.equal(short[2], Number(web.short["completion_ms_mean"]).toPrecision(3));
  assert.equal(short.at(-1), `needs 1,000 requests, ${String(web.short["opened"])} opened`);
  assert.equal(web.short["p99_censored"], true);
  assert.equal(row("web, short", 1)[5], `≥ ${Number(web.short["slowdown_p99"]).toPrecision(3)}`);
  assert.equal(row("web, long", 1).at(-1), `needs 100 and 1,000 requests, ${String(web.long["opened"])} opened`);
  const queries = row("query, queries", 0);
  assert.equal(queries[3], `${query.queries?.["median_censored"] ? "≥ " : ""}${Number(query.queries?.["completion_ms_median"]).toPrecision(3)}`);
  assert.match(queries.at(-1) ?? "", /^needs 20, 100 and 1,000 queries, \d+ asked$/);
  assert.deepEqual(row("query, queries", 1), [], "queries have no slowdown");
});

test("request means cover all seeds, and a statistic missing for one seed is missing", () => {
  const part = { group: "web", of: "short" } as const;
  const values = valuesOf(two, part, "slowdown_mean").map(Number);
  const table = rows(RequestResults({ runs: two, over: "means over 2 seeds" }));
  const cells = table.filter(([name]) => name === "web, short")[1] ?? [];
  assert.equal(cells[2], ((Number(values[0]) + Number(values[1])) / 2).toPrecision(3));
  const opened = valuesOf(two, part, "opened").map(Number);
  const least = opened[0] !== undefined && opened[0] <= Number(opened[1]) ? 0 : 1;
  assert.equal(tooFew(two, part, [1000]), `needs 1,000 requests, ${String(opened[least])} with seed ${String(least + 1)}`);
});

test("a group whose requests have one size has no classes, and a scenario without requests no table", async () => {
  assert.deepEqual(partsOf(two).map(partName), ["web, all", "web, short", "web, medium", "web, long", "query, all", "query, queries"]);
  const plain = await runs((scenarios["lan-epd"] ?? "").replace('"10s"', '"50ms"'), [1]);
  assert.equal(RequestResults({ runs: plain, over: "one run" }), null);
  assert.equal(plain[0]?.requests, null);
  const setting = { name: "", toml: "" };
  assert.ok(!haveRequests([{ setting, runs: plain }]) && haveRequests([{ setting, runs: plain }, { setting, runs: two }]));
  assert.equal(statisticsOf(plain[0] as Done, { group: "web", of: "all" }), null);
});

test("a run that is too short has no statistics and no plot", async () => {
  const table = rows(RequestResults({ runs: await runs(toml.replace('"20ms"', '"2.1ms"').replace("load = 0.6", "load = 0.001"), [1]), over: "one run" }));
  const web = table.filter(([name]) => name === "web");
  assert.deepEqual(web.map((cells) => cells.slice(1)), [["0", "0", "0", "0", "–"]]);
  assert.deepEqual(table.find(([name]) => name === "web, all")?.slice(1), ["0", "no requests completed"]);
});

test("every request has a row, and its slowdown is that of the statistics", () => {
  const [{ requests, answer }] = two as [Done];
  assert.ok(requests != null);
  const web = Array.from(requests.group.at.keys()).filter((i) => requests.group.words[requests.group.at[i] ?? -1] === "web");
  assert.equal(web.length, answer.requests[0]?.opened);
  const completed = web.filter((i) => !Number.isNaN(requests.completion_ms[i]));
  assert.equal(completed.length, answer.requests[0]?.completed);
  const sum = completed.reduce((total, i) => total + (requests.slowdown[i] ?? 0), 0);
  assert.ok(Math.abs(sum / completed.length - Number(answer.requests[0]?.all["slowdown_mean"])) < 1e-9);
});

test("logarithmic axes enclose their values and have few round ticks, also for a single value", () => {
  for (const values of [[45_000], [1, 33], [1460, 2.9e7], [1, 1], [0.02, 0.3]]) {
    const { at, ticks } = logAxis(values);
    assert.ok(values.every((value) => at(value) >= 0 && at(value) <= 1), values.join());
    assert.ok(ticks.length >= 2 && ticks.length <= 7, ticks.join());
  }
  assert.deepEqual(logAxis([1, 33]).ticks, [1, 2, 5, 10, 20, 50]);
});

test("the CSV of requests has a row for each group, and columns for its classes and queries", () => {
  const [header, ...lines] = runsCsv(two, "requests")
    .trim()
    .split("\r\n")
    .map((line) => line.split(","));
  const at = (name: string): number => header?.indexOf(name) ?? -1;
  assert.equal(lines.length, 4);
  assert.deepEqual(lines.map((line) => line.at(at("group"))), ["web", "query", "web", "query"]);
  const p95 = two[0]?.answer.requests[0]?.short["slowdown_p95"];
  assert.equal(lines[0]?.[at("short.slowdown_p95")], String(p95));
  assert.equal(lines[0]?.[at("queries.completed")], "");
  assert.ok(Number(lines[1]?.[at("queries.completed")]) > 0 && at("queries") === -1);
});
