// serve.mjs SPINSIM MODULE.wasm FOLDER: drives the page of spinsim serve in Debian's Chromium. It fails if axe-core finds anything in a state of the page,
// in light or dark, at 1280 or 420 pixels; if the page is wider than the window; if a cell is not the text that the command writes; or if a reload, a second
// tab, the back button, a dropped module or cancelling do not work. Screenshots go into FOLDER.
import { chromium } from "playwright-core";
import { spawn, execFileSync } from "node:child_process";
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { join } from "node:path";
import { readFileSync, writeFileSync } from "node:fs";
import assert from "node:assert/strict";

const [spinsim, module, folder] = process.argv.slice(2);
assert(folder, "serve.mjs SPINSIM MODULE.wasm FOLDER");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const command = (...words) => execFileSync(spinsim, words, { encoding: "utf8", cwd: folder, stdio: ["ignore", "pipe", "ignore"] });

const server = spawn(spinsim, ["serve"], { stdio: ["ignore", "pipe", "inherit"] });
const ended = new Promise((r) => server.once("exit", r));
process.on("exit", () => server.kill());
const address = await new Promise((r) => createInterface({ input: server.stdout }).once("line", r));
const origin = new URL(address).origin;
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true });
context.setDefaultTimeout(60_000);

const said = []; // what no page may say
async function open(to) {
  const page = await context.newPage();
  page.on("pageerror", (e) => said.push(`error: ${e.stack}`));
  page.on("console", (m) => { if (!/status of 4\d\d/.test(m.text())) said.push(`${m.type()}: ${m.text()}`); }); // an answer that the page shows
  page.on("dialog", (d) => { said.push(`dialog: ${d.message()}`); d.dismiss(); });
  page.on("request", (r) => { if (!r.url().startsWith(origin)) said.push(`request: ${r.url()}`); });
  await page.goto(to);
  await page.waitForSelector("#fields .field");
  return page;
}

let states = 0;
// sound looks at a state of the page in every way.
async function sound(page, state) {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [1280, 420]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.equal(over, 0, `${state} at ${width}: wider than the window`);
      const found = await page.evaluate(`${axe}; axe.run(document, { resultTypes: ["violations"] })`);
      assert.deepEqual(found.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(" ")}`), [], `${state} at ${width} in ${colorScheme}`);
      await page.screenshot({ path: join(folder, `serve-${state}-${colorScheme}-${width}.png`) });
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1280, height: 900 });
  states++;
}

const answered = (page) => page.waitForSelector("#view .answer");
const typed = (page) => page.locator("#view code").innerText();
// cells are the texts of a table, without its head.
const cells = (page) => page.locator("#view table").first().evaluate((t) => [...t.tBodies[0].rows].map((r) => [...r.cells].map((c) => c.textContent)));
// csv is what the command writes, which here has no quotes.
const csv = (...words) => command(...words, "--format", "csv").trimEnd().split("\n").slice(1, -1).map((l) => l.split(","));

// Without the token there is no page.
const stranger = await browser.newContext();
const answer = await (await stranger.newPage()).goto(origin);
assert.equal(answer.status(), 403);
await stranger.close();

let page = await open(address);
assert(!page.url().includes("token"), page.url());
await sound(page, "empty");
await page.keyboard.press("Tab");
await page.keyboard.press("Enter");
assert.equal(await page.evaluate(() => document.activeElement.id), "shown"); // and the address is as it was
assert(!page.url().includes("#shown"), page.url());

// With the keyboard alone: an experiment, its sizes, Enter.
await page.locator("#experiment").focus();
await page.keyboard.type("bcast");
await page.waitForFunction(() => document.title.startsWith("bcast"));
await page.keyboard.press("Home");
await page.waitForFunction(() => document.title.startsWith("pingpong"));
await page.locator("[id='axis:size']").focus();
await page.keyboard.press("Control+a");
await page.keyboard.type("8,4KiB");
await page.keyboard.press("Enter");
await answered(page);
assert.equal(await page.evaluate(() => document.activeElement.id), "shown");
assert.equal(await typed(page), "spinsim compare pingpong --size 8,4KiB");
await sound(page, "result");

// Every cell is the command's, and so is the file.
await page.getByLabel("All columns").check();
const words = (await typed(page)).split(" ").slice(1);
assert.deepEqual(await cells(page), csv(...words));
const download = page.waitForEvent("download");
await page.getByRole("link", { name: "CSV" }).click();
assert.equal(readFileSync(await (await download).path(), "utf8"), command(...words, "--format", "csv"));

// The report is a page of its own, without an origin, whose script still sorts.
const opened = context.waitForEvent("page");
await page.getByRole("link", { name: "report" }).click();
const report = await opened;
report.on("console", (m) => said.push(`report: ${m.text()}`));
await report.waitForSelector("th button");
assert.equal(await report.evaluate(() => origin), "null");
await report.close();

// A reload, and another tab that does something else, change nothing.
const address1 = page.url();
await page.reload();
await answered(page);
assert.equal(await typed(page), "spinsim compare pingpong --size 8,4KiB");
const second = await open(address1);
await answered(second);
await second.selectOption("#experiment", "accumulate");
await second.waitForFunction(() => document.title.startsWith("accumulate"));
await second.fill("[id='axis:size']", "64");
await second.click("#go");
await answered(second);
assert.match(await typed(second), /^spinsim compare accumulate/);
await page.reload();
await answered(page);
assert.equal(await typed(page), "spinsim compare pingpong --size 8,4KiB");
await second.goBack();
await second.waitForSelector("text=No run yet");
await second.goBack();
await answered(second);
assert.equal(await typed(second), "spinsim compare pingpong --size 8,4KiB");
await second.close();

// On a narrow window the answer is in sight, above what was chosen.
await page.setViewportSize({ width: 420, height: 900 });
await page.reload();
await answered(page);
assert(await page.locator("#view .answer").first().evaluate((e) => e.getBoundingClientRect().bottom < innerHeight), "the answer is out of sight");
await page.screenshot({ path: join(folder, "serve-narrow.png") });
await page.setViewportSize({ width: 1280, height: 900 });
await page.reload();
await answered(page);

// What is in the address may be anything.
const odd = await open(`${origin}/#experiment=%3Cb%3E&point=x&view=__proto__&run:result=../x&axis:__proto__=1&module:x=1`);
await odd.waitForFunction(() => document.getElementById("wrong").textContent.includes("no experiment"));
await odd.close();

// The other views.
await page.getByRole("link", { name: "Breakdown" }).click();
await page.waitForFunction(() => document.querySelector("#view .answer")?.textContent.includes("of which"));
await sound(page, "breakdown");
await page.getByRole("link", { name: "Timeline" }).click();
await page.waitForSelector(".lanes");
await page.selectOption("#point", { index: 3 });
await page.waitForFunction(() => document.querySelector("#view code")?.textContent.includes("spin-stream"));
await page.waitForSelector(".lanes");
assert.equal(await typed(page), "spinsim compare pingpong --profile spin-dis --mode spin-stream --size 8");
await sound(page, "timeline");
await page.goBack();
await page.waitForFunction(() => document.querySelector("#view code")?.textContent.includes("--mode rdma"));

// A run with a module of one's own, which is dropped. It is a copy, so the two runs are the same.
const drop = (name, bytes, slot) => page.evaluate(([name, bytes, slot]) => {
  const data = new DataTransfer();
  data.items.add(new File([new Uint8Array(bytes)], name));
  for (const kind of ["dragover", "drop"]) document.getElementById(`slot:${slot}`).closest(".drop").dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
}, [name, bytes, slot]);
await page.getByRole("link", { name: "Result", exact: true }).click();
await answered(page);
await drop("bad.wasm", [0, 97, 115, 109, 9], "pingpong.store");
await page.waitForFunction(() => document.getElementById("wrong").textContent.includes("bad.wasm"));
await sound(page, "wrong-module");
const bytes = readFileSync(module);
writeFileSync(join(folder, "mine.wasm"), bytes);
await drop("mine.wasm", [...bytes], "pingpong.store");
await page.waitForSelector("text=Runs your mine.wasm.");
await page.click("#go");
await page.waitForFunction(() => document.querySelector("#view code")?.textContent.includes("mine.wasm"));
await answered(page);
assert.equal(await typed(page), "spinsim compare pingpong --handler pingpong.store=mine.wasm --size 8,4KiB");
await page.getByLabel("All columns").check();
assert.deepEqual(await cells(page), csv(...(await typed(page)).split(" ").slice(1)));
await page.getByRole("link", { name: "Compare" }).click();
await page.waitForSelector("#with option:nth-child(2)", { state: "attached" });
await page.selectOption("#with", { label: "spinsim compare pingpong --size 8,4KiB" });
await page.waitForSelector("#column");
for (const row of await cells(page)) assert.equal(row.at(-1), "1.000");
await sound(page, "comparison");
assert.equal(await page.locator("#view .answer").innerText(), "latency (ns): B / A is 1.000.");
await page.reload();
await page.waitForSelector("#column");

// Errors: of the form, and of a command that refuses.
await page.selectOption("#experiment", "bcast");
await page.waitForFunction(() => document.title.startsWith("bcast"));
await page.fill("[id='axis:size']", "eight");
await page.click("#go");
await page.waitForFunction(() => document.getElementById("wrong").textContent.includes("eight"));
assert.equal(await page.evaluate(() => document.activeElement.id), "axis:size");
await sound(page, "wrong-field");
await page.fill("[id='axis:size']", "8");
await page.getByText("Device and network").click();
await page.fill("#set", "hpu.cores=none");
assert(await page.locator("#changed").isHidden(), "nothing is shown yet");
await page.click("#go");
await page.waitForSelector("#view .wrong");
assert.match(await page.locator("#view .wrong").innerText(), /hpu\.cores/);
await sound(page, "error");

// A long run is cancelled, and stays so.
await page.selectOption("#experiment", "graph");
await page.waitForFunction(() => document.title.startsWith("graph"));
await page.fill("[id='axis:scale']", "20");
await page.click("#go");
await page.waitForFunction(() => document.getElementById("state").textContent.includes("of"));
await sound(page, "running");
await page.reload();
await page.click("#cancel");
await page.waitForFunction(() => document.getElementById("state").textContent.startsWith("Cancelled"));
await page.reload();
await page.waitForFunction(() => document.getElementById("state").textContent.startsWith("Cancelled"));
await sound(page, "cancelled");

// The server ends: the page says so.
server.kill("SIGINT");
assert.equal(await ended, 0);
await page.click("#go");
await page.waitForFunction(() => document.getElementById("wrong").textContent.includes("spinsim serve has ended"));
assert.deepEqual(said.filter((s) => !s.includes("ERR_CONNECTION_REFUSED")), []);
await browser.close();
console.log(`${states} states, each in light and dark, at 1280 and 420 pixels`);
