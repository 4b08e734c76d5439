// check.mjs FOLDER PAGE.html...: opens pages in Debian's Chromium, in light and dark, at 1280 and at 400 pixels, and fails if a page asks the network for
// anything, says an error, runs a script that is not its own, is wider than the window, or does not sort. Screenshots go into FOLDER.
import { chromium } from "playwright-core";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { readFileSync, writeFileSync } from "node:fs";
import assert from "node:assert/strict";

const [folder, ...pages] = process.argv.slice(2);
assert(pages.length > 0, "check.mjs FOLDER PAGE.html...");
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

// sorts presses the head of every column of the first table with several rows and looks at the order of the cells.
async function sorts(page) {
  return page.evaluate(() => {
    const table = [...document.querySelectorAll("table.sortable")].find((t) => t.tBodies[0].rows.length > 2);
    if (!table) return 0;
    const column = (i) => [...table.tBodies[0].rows].map((r) => r.cells[i]);
    const number = (c) => (c.dataset.value === undefined ? NaN : Number(c.dataset.value));
    const as = [...table.tBodies[0].rows].map((r) => r.textContent).join("\n");
    [...table.tHead.rows[0].cells].forEach((head, i) => {
      const button = head.querySelector("button");
      for (const [way, sign] of [["ascending", 1], ["descending", -1]]) {
        button.click();
        if (head.getAttribute("aria-sort") !== way) throw new Error(`${head.textContent}: not ${way}`);
        const values = column(i).map(number).filter((v) => !Number.isNaN(v));
        values.forEach((v, k) => {
          if (k > 0 && sign * (v - values[k - 1]) < 0) throw new Error(`${head.textContent}: ${values} is not ${way}`);
        });
      }
      button.click();
      if (head.hasAttribute("aria-sort")) throw new Error(`${head.textContent}: still sorted`);
    });
    if (as !== [...table.tBodies[0].rows].map((r) => r.textContent).join("\n")) throw new Error("the third press does not give back the order");
    return table.tHead.rows[0].cells.length;
  });
}

// fits is by how many pixels the page is wider than the window.
const fits = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

let sorted = 0;
for (const name of pages) {
  const url = pathToFileURL(resolve(name)).href;
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [1280, 400]) {
      const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 } });
      const page = await context.newPage();
      const said = [];
      page.on("console", (m) => said.push(`${m.type()}: ${m.text()}`));
      page.on("pageerror", (e) => said.push(`error: ${e.message}`));
      page.on("dialog", (d) => { said.push(`dialog: ${d.message()}`); d.dismiss(); });
      page.on("request", (r) => { if (r.url() !== url && !r.url().startsWith("data:")) said.push(`request: ${r.url()}`); });
      await page.goto(url);
      sorted += await sorts(page);
      assert.equal(await fits(page), 0, `${name} at ${width}: wider than the window`);
      await page.evaluate(() => { for (const d of document.querySelectorAll("details")) d.open = true; });
      assert.equal(await fits(page), 0, `${name} at ${width}, unfolded: wider than the window`);
      await page.evaluate(() => { for (const d of document.querySelectorAll("details")) d.open = false; });
      const [ground, ink] = await page.evaluate(() => { const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]; });
      const bright = (c) => c.match(/\d+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0) / 3;
      assert(colorScheme === "dark" ? bright(ground) < 64 && bright(ink) > 192 : bright(ground) > 192 && bright(ink) < 64, `${name}: ${ink} on ${ground} in ${colorScheme}`);
      assert.equal(await page.locator("h1").count(), 1, `${name}: one head`);
      assert.deepEqual(said, [], name);
      await page.screenshot({ path: join(folder, `${basename(name, ".html")}-${colorScheme}-${width}.png`), fullPage: width === 1280 });
      await context.close();
    }
  }
  // Without JavaScript everything is there but sorting.
  const plain = await browser.newContext({ javaScriptEnabled: false });
  const page = await plain.newPage();
  await page.goto(url);
  assert(await page.locator("table td").count() > 0, `${name}: no table without JavaScript`);
  await page.emulateMedia({ media: "print" });
  await page.pdf({ path: join(folder, `${basename(name, ".html")}.pdf`), format: "A4" });
  await plain.close();
}
assert(sorted > 0, "no table was sorted");

// The policy of a page lets no script run that was put into it afterwards, and asks no network.
const text = readFileSync(pages[0], "utf8");
const enemy = join(folder, "enemy.html");
writeFileSync(enemy, text.replace("</main>", '<script>window.bad = 1</script><img src="https://example.com/x.png" onerror="window.bad = 2"></main>'));
const page = await browser.newPage();
const asked = [];
const answered = (r) => { if (r.url().startsWith("http")) asked.push(`${r.url()} ${r.failure()?.errorText ?? "answered"}`); };
page.on("requestfinished", answered);
page.on("requestfailed", (r) => { if (r.failure()?.errorText !== "csp") answered(r); });
await page.goto(pathToFileURL(resolve(enemy)).href);
assert.equal(await page.evaluate(() => window.bad), undefined, "a foreign script has run");
assert.deepEqual(asked, [], "a foreign picture was asked for");
await browser.close();
console.log(`${pages.length} pages, ${sorted} columns sorted`);
