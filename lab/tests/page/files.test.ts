import assert from "node:assert/strict";
import { test } from "node:test";
import { csv, fileName, runsCsv } from "../../src/page/keep/files.ts";
import { lines, sources } from "../../src/page/keep/lines.ts";
import { local } from "../engine/local.ts";

const { engine } = await local();

test("CSV cells with commas, quotes and line breaks are quoted, and a missing number is an empty cell", () => {
  assert.equal(
    csv(
      ["a", "b"],
      [
        ['x,"y"', "1\n2"],
        [Number.NaN, null],
      ],
    ),
    'a,b\r\n"x,""y""","1\n2"\r\n,\r\n',
  );
});

test("text that a spreadsheet would run as a formula is escaped, and numbers are not", () => {
  const rows = [
    ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", '=HYPERLINK("x")', "a=1"],
    [-1.5, 0, -2e-9],
  ];
  assert.equal(
    csv(["=name"], rows),
    `'=name\r\n'=1+1,'+1,'-1,'@SUM(A1),'\t=1,"'=HYPERLINK(""x"")",a=1\r\n-1.5,0,-2e-9\r\n`,
  );
});

test("a file is named after its scenario, whatever its name contains", () => {
  assert.equal(fileName("five sources, LAN, EPD"), "five-sources-lan-epd");
  assert.equal(fileName("../../<img>"), "img");
  assert.equal(fileName("…"), "scenario");
});

test("the table of runs has a row for each run and connection, with the fingerprint", async () => {
  const lan = (await engine.scenarios())["lan-epd"] ?? "";
  const toml = lan.replace('"10s"', '"50ms"').replace(/^name = .*$/m, 'name = "lan"');
  const runs = [];
  for (const seed of [1, 2]) {
    runs.push({ seed, answer: (await engine.run(toml, seed)).answer });
  }
  const rows = runsCsv(runs, "flows").trim().split("\r\n");
  assert.equal(rows.length, 1 + 2 * 5);
  const header = rows[0]?.split(",") ?? [];
  assert.deepEqual(header.slice(0, 6), ["scenario", "seed", "efficiency", "fairness", "fingerprint", "flow"]);
  assert.equal(rows[1]?.split(",")[5], "tcp1");
  const goodput = rows[1]?.split(",")[header.indexOf("goodput_mbps")];
  assert.equal(goodput, String(runs[0]?.answer.flows[0]?.["goodput_mbps"]));
  assert.ok(rows[6]?.includes(runs[1]?.answer.fingerprint ?? "?"));
});

test("commands refer to a shipped scenario by name and to any other by file", () => {
  assert.equal(lines(["lan-epd"], 3, 1).command, "celltrain run lan-epd --seed 3");
  assert.match(lines(["lan-epd"], 3, 1).python, /ct\.run\("lan-epd", seed=3\)/);
  assert.equal(lines(["my-own.toml"], 1, 20).command, "celltrain run my-own.toml --seed 1 --seeds 20 --fingerprints");
  assert.match(lines(["my-own.toml"], 5, 20).python, /for seed in range\(5, 25\)/);
  assert.match(lines(["my-own.toml"], 5, 20).python, /print\(f"seed \{run\.seed\}  \{run\.fingerprint\}"\)/);
});

test("several scenarios are compared, each from its own file unless it is shipped", () => {
  const texts = ["lan-epd", "lan-epd (2)", "lan epd 2"].map((name, i) => ({ name, toml: String(i) }));
  const names = sources(texts, (toml) => (toml === "0" ? "lan-epd" : null)).map((s) => s.source);
  assert.deepEqual(names, ["lan-epd", "lan-epd-2.toml", "lan-epd-2-3.toml"]);
  const { command, python } = lines(names, 4, 10);
  assert.equal(command, "celltrain compare lan-epd lan-epd-2.toml lan-epd-2-3.toml --seed 4 --seeds 10");
  assert.match(python, /print\(ct\.compare\(\["lan-epd", "lan-epd-2\.toml", "lan-epd-2-3\.toml"\], seeds=10, first_seed=4\)\)/);
});
