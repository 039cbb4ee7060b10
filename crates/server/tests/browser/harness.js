// What tests of pages share: servers with the sample catalog, Chromium, and a watch over everything that a page does.
//
// - `serve`: a server of the real program over a store of its own
// - `launch`: Chromium
// - `look`: a page that is watched, as one reader sees it (light, dark, phone, without script)
//
// Packages come from `target/browser`, where `ci/install` puts them; `ci/browser` runs the tests.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository. */
export const root = fileURLToPath(new URL('../../../../', import.meta.url));
const target = process.env.CARGO_TARGET_DIR ?? path.join(root, 'target');
const packages = createRequire(path.join(root, 'target/browser/package.json'));
const { chromium } = packages('playwright-core');
const { source: axe } = packages('axe-core');

/** The program under test. */
export const program = process.env.VITRINE_PROGRAM ?? path.join(target, 'debug/vitrine');

/** The sample catalog. */
export const sample = path.join(root, 'fixtures/catalog.ndjson');

const screenshots = path.join(root, 'target/screenshots');

/**
 * Starts a server over a new store that holds `files`, with an admin port.
 *
 * @param {{ files?: string[], generated?: number, options?: string[] }} settings `generated` is the number of invented products
 *   instead of files, `options` are more of `vitrine serve`'s
 * @returns where it is (`base`, `admin`), `run` for commands on its store, `key` to make a key, and `stop`
 */
export async function serve({ files = [sample], generated = 0, options = [] } = {}) {
  const directory = mkdtempSync(path.join(tmpdir(), 'vitrine-browser-'));
  const env = { ...process.env, VITRINE_STORE: `sqlite:${path.join(directory, 'vitrine.db')}` };
  const run = (...words) => execFileSync(program, words, { env, encoding: 'utf8', maxBuffer: 1 << 28 });
  if (generated > 0) {
    const made = path.join(directory, 'generated.ndjson');
    writeFileSync(made, run('generate', '--products', String(generated)));
    run('load', made);
  } else run('load', ...files);
  const listen = ['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'];
  const child = spawn(program, ['serve', ...listen, ...options], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const said = await new Promise((resolve, reject) => {
    let text = '';
    ended.then(() => reject(new Error(`vitrine ended:\n${text}`)));
    child.stderr.setEncoding('utf8').on('data', (more) => {
      text += more;
      if (/listening on .*\n/m.test(text)) resolve(text);
    });
  });
  const [, address] = /listening on ([^,\s]+)/.exec(said);
  const [, admin] = /admin port on ([^"\s]+)/.exec(said);
  return {
    base: `http://${address}`,
    admin: `http://${admin}`,
    run,
    key: (...more) => JSON.parse(run('keys', 'create', '--json', '--label', 'browser', ...more)).key,
    stop: async () => {
      child.kill('SIGTERM');
      await ended;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Starts Chromium: the system's, or that which `VITRINE_CHROMIUM` names. */
export function launch() {
  const usual = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
  const executablePath = process.env.VITRINE_CHROMIUM ?? usual.find((name) => existsSync(name));
  // The sandbox can't be had by root, who runs the tests in containers.
  const asRoot = process.getuid() === 0 ? ['--no-sandbox'] : [];
  return chromium.launch({ executablePath, args: [...asRoot, '--disable-dev-shm-usage'] });
}

/** How long anything is waited for, in milliseconds. */
const PATIENCE = 180_000;

/** How readers look at pages. Every page is looked at in each. */
export const LOOKS = {
  light: { colorScheme: 'light', viewport: { width: 1280, height: 900 } },
  dark: { colorScheme: 'dark', viewport: { width: 1280, height: 900 } },
  narrow: { colorScheme: 'dark', viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true },
  wide: { colorScheme: 'light', viewport: { width: 2560, height: 1300 } },
  phone: { colorScheme: 'light', viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true },
};

/**
 * Opens a page that is watched. Nothing is waved through: requests to other origins, errors on the console, errors
 * of scripts, reports of the Content-Security-Policy and failed requests are all kept, and `clean` asserts that there
 * were none.
 *
 * @param browser what `launch` gave
 * @param {string} origin where the page may ask, and nowhere else
 * @param {{ as?: keyof typeof LOOKS, javaScript?: boolean }} how
 */
export async function look(browser, origin, { as = 'light', javaScript = true } = {}) {
  const context = await browser.newContext({ ...LOOKS[as], javaScriptEnabled: javaScript, reducedMotion: 'reduce' });
  // A page that waits in vain fails; a machine that is busy doesn't.
  context.setDefaultTimeout(PATIENCE);
  const seen = [];
  await context.exposeFunction('reportViolation', (what) => seen.push(`policy: ${what}`));
  await context.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => {
      window.reportViolation(`${event.violatedDirective} ${event.blockedURI} at ${event.sourceFile}:${event.lineNumber}`);
    });
  });
  const page = await context.newPage();
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (url.origin !== origin && !['data:', 'blob:', 'about:'].includes(url.protocol)) seen.push(`other origin: ${url}`);
  });
  page.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText;
    // The browser asks for an icon once the page is there, and no more when it is left at once.
    if (reason === 'net::ERR_ABORTED' && request.url().endsWith('/icon.svg')) return;
    seen.push(`failed: ${request.url()} ${reason}`);
  });
  page.on('pageerror', (error) => seen.push(`script: ${error.stack}`));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) seen.push(`console: ${message.text()}`);
  });
  return {
    page,
    /** Asserts that the page did nothing that it shouldn't, since this was last asked, but for what `but` matches. */
    clean: (but = /^$/) => assert.deepEqual(seen.splice(0).filter((what) => !but.test(what)), []),
    /** Asserts that axe finds nothing serious, and that the page doesn't scroll sideways. */
    accessible: () => accessible(page, seen),
    /** Takes a picture of the whole page into `target/screenshots`, unless VITRINE_SCREENSHOTS=no. */
    picture: async (name) => {
      if (process.env.VITRINE_SCREENSHOTS === 'no') return;
      mkdirSync(screenshots, { recursive: true });
      await page.screenshot({ path: path.join(screenshots, `${name}-${as}.png`), fullPage: true });
    },
    close: () => context.close(),
  };
}

async function accessible(page, seen) {
  // By the debugger, which no policy of the page concerns.
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'], preload: false }));
  const serious = violations.filter(({ impact }) => ['serious', 'critical'].includes(impact));
  const told = serious.map(({ id, help, nodes }) => `${id}: ${help}\n  ${nodes.map(({ html, failureSummary }) => `${html}\n  ${failureSummary}`).join('\n  ')}`);
  assert.deepEqual(told, [], `axe on ${page.url()}, where these were seen: ${seen.join('; ')}`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(wide <= 0, `${page.url()} scrolls sideways by ${wide} px`);
}
