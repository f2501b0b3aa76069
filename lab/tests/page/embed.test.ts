import assert from "node:assert/strict";
import { test } from "node:test";
import { readEmbed, snippet, staysInFrame, unframed } from "../../src/page/link/embed.ts";

test("a URL query or the end of a URL fragment requests the embedded layout", () => {
  for (const [search, hash, embed, rest] of [
    ["", "#/learn/one-cell/2", null, "#/learn/one-cell/2"],
    ["?embed", "#/learn/one-cell/2", "auto", "#/learn/one-cell/2"],
    ["?embed=dark", "#v1.abc", "dark", "#v1.abc"],
    ["?x=1&embed=light&y", "", "light", ""],
    ["", "#/inside&embed", "auto", "#/inside"],
    ["", "#v1.abc-_&embed=dark", "dark", "#v1.abc-_"],
    ["?embed=purple", "", "auto", ""],
    ["?embedded", "#/inside&embedding", null, "#/inside&embedding"],
  ] as const) {
    assert.deepEqual(readEmbed(search, hash), { embed, hash: rest }, `${search} ${hash}`);
  }
});

test("an embedding frame shows only its story and the microscope of that story", () => {
  assert.ok(staysInFrame("learn/one-cell/2", "learn/one-cell/3"));
  assert.ok(staysInFrame("learn/one-cell/2", "inside"));
  assert.ok(staysInFrame("inside", "learn/one-cell/2"));
  for (const [from, to] of [
    ["learn/one-cell/2", "learn/tie/1"],
    ["learn/one-cell/2", "learn"],
    ["learn/one-cell/2", "run"],
    ["inside", "compare"],
  ] as const) {
    assert.ok(!staysInFrame(from, to), `${from} to ${to}`);
  }
});

test("the snippet contains an address that works from the embedding page", () => {
  const hosted = snippet("https://example.org/lab.html?embed#/run", "#/learn/one-cell/2", 'a "b" <c>');
  assert.ok(hosted.startsWith('<iframe src="https://example.org/lab.html?embed#/learn/one-cell/2"'), hosted);
  assert.match(hosted, /title="a &quot;b&quot; &lt;c>"/);
  assert.match(hosted, /width="960" height="540" style="border: 0; max-width: 100%"/);
  assert.match(snippet("file:///home/me/lab.html#v1.x", "#v1.abc", "t"), /^<iframe src="lab\.html\?embed#v1\.abc"/);
});

test("an embedded page links to the same view of the whole lab", () => {
  const at = (href: string) => unframed(new URL(href));
  assert.equal(at("https://example.org/lab.html?embed=dark#/inside"), "https://example.org/lab.html#/inside");
  assert.equal(at("file:///lab.html#v1.abc&embed"), "file:///lab.html#v1.abc");
});
