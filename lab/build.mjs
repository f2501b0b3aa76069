/**
 * Builds the lab into one file: `node build.mjs --core celltrain_web.wasm --data data.json --out lab.html`.
 *
 * The page embeds the simulator and the shipped texts compressed, as base64. It contains the program and the styles as
 * they are, with their hashes in the content security policy. `--tests FOLDER` bundles the tests instead.
 */

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import zopfli from "@gfx/zopfli";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(here);

/** Size limits of the file; see `docs/design/lab.md`. */
const MOST_BYTES = 3_000_000;
const MOST_COMPRESSED = 1_560_000;

const { values: options } = parseArgs({
  options: {
    core: { type: "string", default: join(root, "target/wasm32-unknown-unknown/web/celltrain_web.wasm") },
    data: { type: "string", default: join(root, "out/lab/data.json") },
    out: { type: "string", default: join(root, "dist/lab.html") },
    tests: { type: "string" },
    page: { type: "string", default: "src/page/main.tsx" },
  },
});

/** Options of every bundle. */
const common = {
  bundle: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  plugins: [{ name: "glossary", setup: (builder) => builder.onLoad({ filter: /glossary\.md$/ }, glossary) }],
  loader: { ".toml": "text", ".csv": "text", ".html": "text" },
  absWorkingDir: here,
  legalComments: "none",
  logLevel: "warning",
  write: false,
};

if (options.tests !== undefined) {
  await buildTests(options.tests);
} else {
  await buildPage();
}

/** Returns the glossary rows whose terms the page explains. Other rows would only make the page larger. */
function glossary({ path }) {
  const explained = readFileSync(join(here, "src/page/parts/words.tsx"), "utf8");
  const rows = readFileSync(path, "utf8").split("\n");
  const kept = rows.filter((row) => row.startsWith("| ") && explained.includes(`"${row.slice(2).split(" | ")[0]}"`));
  return { contents: kept.join("\n"), loader: "text" };
}

async function buildPage() {
  const worker = await bundled("src/engine/worker.ts", { format: "iife" });
  const page = await build({
    ...common,
    entryPoints: [options.page],
    format: "iife",
    minify: true,
    outdir: "out",
    define: { WORKER_SOURCE: JSON.stringify(worker) },
  });
  const file = (ending) => page.outputFiles.find((one) => one.path.endsWith(ending))?.text ?? "";
  // These sequences would end a script or a style anywhere in a page.
  const script = file(".js").replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
  const safe = (css) => css.replaceAll("</style", "<\\/style");
  const style = safe(file(".css"));
  const dark = safe(await bundled("src/page/styles/dark.css"));
  const parts = {
    policy: policy(script, [style, dark]),
    style,
    dark,
    script,
    core: await packed(stripped(readFileSync(options.core))),
    data: await packed(JSON.stringify(data())),
  };
  const shell = readFileSync(join(here, "src/shell.html"), "utf8");
  const html = shell.replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]);
  mkdirSync(dirname(options.out), { recursive: true });
  writeFileSync(options.out, html);
  const [bytes, compressed] = [Buffer.byteLength(html), gzipSync(html, { level: 9 }).length];
  const shown = relative(process.cwd(), options.out);
  console.log(
    `${shown}: ${bytes.toLocaleString("en")} bytes, ${compressed.toLocaleString("en")} with gzip ` +
      `(simulator ${parts.core.length.toLocaleString("en")}, texts ${parts.data.length.toLocaleString("en")}, ` +
      `page ${script.length.toLocaleString("en")}, style ${style.length.toLocaleString("en")})`,
  );
  if (bytes > MOST_BYTES || compressed > MOST_COMPRESSED) {
    console.error(`make: ${shown} is too large: at most ${MOST_BYTES} bytes, ${MOST_COMPRESSED} with gzip, are allowed`);
    process.exit(1);
  }
}

async function bundled(entry, more) {
  const built = await build({ ...common, entryPoints: [entry], minify: true, outdir: "out", ...more });
  return built.outputFiles[0].text;
}

/** Returns a policy that loads nothing and runs only the embedded program. Workers start from the page's own text. */
function policy(script, styles) {
  const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  return [
    "default-src 'none'",
    `script-src ${hash(script)} 'wasm-unsafe-eval'`,
    `style-src ${styles.map(hash).join(" ")}`,
    "worker-src blob:",
    "img-src data: blob:",
    "connect-src 'none'",
    "form-action 'none'",
    "base-uri 'none'",
  ].join("; ");
}

/** Removes the WebAssembly module's custom sections, such as function names for debuggers. */
function stripped(module) {
  const parts = [module.subarray(0, 8)];
  for (let at = 8; at < module.length; ) {
    // A section consists of its kind, its length in LEB128 and its content. Kind 0 is a custom section.
    const kind = module[at];
    let [length, shift, content] = [0, 0, at + 1];
    do {
      length += (module[content] & 0x7f) * 2 ** shift;
      shift += 7;
    } while (module[content++] & 0x80);
    if (kind !== 0) {
      parts.push(module.subarray(at, content + length));
    }
    at = content + length;
  }
  return Buffer.concat(parts);
}

/** Compresses in the format of gzip. Zopfli's result is 4 % smaller than that of zlib, and takes seconds instead of one. */
async function packed(content) {
  // More iterations save less than 200 bytes.
  const compressed = await zopfli.gzipAsync(Buffer.from(content), { numiterations: 3 });
  return Buffer.from(compressed).toString("base64");
}

/** Collects the shipped texts in the form of `Data` in `payload.ts`. */
function data() {
  const folder = (path, ending) =>
    readdirSync(join(root, path))
      .filter((name) => name.endsWith(ending))
      .sort()
      .map((name) => [basename(name, ending), readFileSync(join(root, path, name), "utf8")]);
  const version = /^version = "([^"]+)"/m.exec(readFileSync(join(root, "Cargo.toml"), "utf8"))[1];
  return {
    version,
    help: Object.fromEntries(folder("docs/models", ".md").map(([name, text]) => [name, paragraphs(text)])),
    ...JSON.parse(readFileSync(options.data, "utf8")),
  };
}

/** Returns the section of a model's page on what the model does, as plain text. */
function paragraphs(page) {
  const section = /^## What it does\n([\s\S]*?)(?=^## )/m.exec(page)?.[1] ?? page.replace(/^# .*\n/, "");
  return section
    .replace(/```[\s\S]*?```/g, "")
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/[`*]/g, "")
    .replace(/([^\n])\n(?=[^\n])/g, "$1 ")
    .replace(/\n{2,}/g, "\n\n")
    .trim();
}

/** Bundles every test with the code it tests, for node's test runner. */
async function buildTests(folder) {
  const files = readdirSync(join(here, "tests"), { recursive: true })
    .map(String)
    .filter((name) => name.endsWith(".test.ts") || name.endsWith(".test.tsx"))
    .map((name) => join("tests", name));
  rmSync(folder, { recursive: true, force: true });
  await build({
    ...common,
    write: true,
    entryPoints: files,
    outdir: folder,
    outbase: "tests",
    outExtension: { ".js": ".mjs" },
    platform: "node",
    packages: "external",
    sourcemap: "inline",
    define: { WORKER_SOURCE: '""' },
  });
  // Node resolves packages from the folder of the tests.
  const modules = join(here, "node_modules");
  if (!existsSync(modules)) {
    throw new Error("lab/node_modules is missing: run npm ci");
  }
}
