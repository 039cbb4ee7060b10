// The documentation site as its readers meet it: the quick start followed by clicks, without script, by keyboard, in
// light and dark and on a phone.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { LOOKS, launch, look, serve } from './harness.js';

const PAGES = ['', '/quick-start', '/recipes', '/products', '/filters', '/paging', '/texts', '/assortments', '/caching', '/changes', '/webhooks', '/keys',
  '/errors', '/limits', '/clients', '/versions', '/errors/rate_limited', '/errors/bad_request', '/reference', '/reference/listProducts',
  '/reference/getText', '/search?q=limit', '/search?q=xyzzy'];

/** Languages of a request. */
const LANGUAGES = ['curl', 'JavaScript', 'Python', 'Go', 'PHP', 'Ruby'];

let server, browser, key;

before(async () => {
  server = await serve();
  key = server.key('--test');
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

/** Presses Run of the block that has this text; returns what is shown below it. */
async function run(page, part) {
  const block = page.locator('.code', { hasText: part }).first();
  await block.getByRole('button', { name: 'Run' }).click();
  const result = block.locator('.result');
  await result.locator('.status .badge').waitFor();
  return result;
}

test('the quick start is followed by clicks, from a key to the next page', async () => {
  const { page, clean, picture, close } = await look(browser, server.base);
  const asked = [];
  page.on('request', (request) => asked.push(request.url()));
  await page.goto(`${server.base}/docs/quick-start`);
  // Without a key nothing is sent, and the field is pointed at.
  await page.locator('.code', { hasText: '/ping' }).getByRole('button', { name: 'Run' }).click();
  await page.getByText('Put your key into the field first.').waitFor();
  const field = page.getByLabel('Your key, to try things on this page');
  assert.ok(await field.evaluate((input) => input === document.activeElement));
  await field.fill(key);

  const ping = await run(page, '/ping');
  assert.match(await ping.innerText(), /200[^]*X-Request-Id[^]*pong/);
  // A step that needs the answer of another one says so.
  const step = page.locator('.code', { hasText: 'after=$AFTER' });
  await step.getByRole('button', { name: 'Run' }).click();
  await step.getByText('page.json is not there. Run the steps above first.').waitFor();
  const list = await run(page, '/product?limit=3');
  const [, code] = /200[^]*ETag[^]*rel="next"[^]*?"code": "([^"]+)"/.exec(await list.innerText());
  await run(page, 'product/countries');
  const country = await run(page, 'countries_redeemable_in=$COUNTRY');
  assert.match(await country.innerText(), /200[^]*"is_orderable": true/);
  const product = await run(page, 'content=html');
  assert.match(await product.innerText(), new RegExp(`200[^]*"code": "${code}"[^]*description_html`));
  const again = await run(page, '--etag-compare');
  assert.match(await again.innerText(), /304/);
  const next = await run(page, 'after=$AFTER');
  assert.match(await next.innerText(), /200[^]*"catalog"[^]*"code"/);
  assert.ok(!(await next.innerText()).includes(`"code": "${code}"`));
  await picture('docs-quick-start-followed');

  // The key is remembered in this tab, and was in no address.
  await page.getByRole('link', { name: 'Paging' }).first().click();
  await page.waitForURL(/paging/);
  assert.equal(await page.getByLabel('Your key, to try things on this page').inputValue(), key);
  assert.deepEqual(asked.filter((url) => url.includes(key.split('.')[1])), []);
  await page.getByRole('button', { name: 'Forget' }).click();
  assert.equal(await page.evaluate(() => sessionStorage.length + localStorage.length), 0);
  clean();
  await close();
});

test('filters take countries and categories from the answers before', async () => {
  const { page, clean, close } = await look(browser, server.base);
  await page.goto(`${server.base}/docs/filters`);
  await page.getByLabel('Your key, to try things on this page').fill(key);
  await run(page, 'product/countries');
  await run(page, 'product/categories');
  const sent = page.waitForRequest(/\/v2\/product\?/);
  const result = await run(page, '--data-urlencode');
  const query = new URL((await sent).url()).searchParams;
  assert.match(await result.innerText(), /200/);
  assert.deepEqual([...query.keys()], ['countries_redeemable_in', 'countries_redeemable_in', 'is_orderable', 'categories']);
  const ask = async (path) => (await (await fetch(`${server.base}/v2/product/${path}`, { headers: { 'X-Api-Key': key } })).json())[path];
  const [countries, categories] = [await ask('countries'), await ask('categories')];
  assert.deepEqual(query.getAll('countries_redeemable_in'), [countries.at(0), countries.at(-1)]);
  assert.equal(query.get('categories'), categories[0].code);
  clean();
  await close();
});

test('a browser without a path reaches the documentation, and a wrong path shows a page', async () => {
  const { page, clean, picture, accessible, close } = await look(browser, server.base);
  await page.goto(server.base);
  await page.waitForURL(`${server.base}/docs`);
  await page.goto(`${server.base}/docs/a/nowhere`);
  await page.getByRole('heading', { name: 'Not found' }).waitFor();
  await page.goto(`${server.base}/docs/pageing.html`);
  await picture('docs-not-found');
  await accessible();
  await page.locator('.nearest').getByRole('link', { name: 'Paging' }).click();
  await page.waitForURL(`${server.base}/docs/paging`);
  await page.goto(`${server.base}/docs/a/nowhere`);
  await page.getByRole('link', { name: 'Paging' }).first().click();
  await page.waitForURL(`${server.base}/docs/paging`);
  clean(/^console: Failed to load resource: .* 404/);
  await close();
});

test('the reference sends what its forms say, and errors are shown as they come', async () => {
  const { page, clean, picture, close } = await look(browser, server.base);
  await page.goto(`${server.base}/docs/reference/listProducts`);
  await page.getByLabel('Your key, to try things on this page').fill(key);
  const form = page.locator('form.try[data-path="/product"]');
  await form.getByLabel('countries_redeemable_in').fill('GB\nIE');
  await form.getByLabel('is_orderable').selectOption('true');
  await form.getByRole('textbox', { name: 'limit' }).fill('2');
  const sent = page.waitForRequest(/\/v2\/product\?/);
  await form.getByRole('button', { name: 'Send' }).click();
  const query = new URL((await sent).url()).search;
  assert.equal(query, '?is_orderable=true&countries_redeemable_in=GB&countries_redeemable_in=IE&limit=2');
  await form.getByText('200 OK').waitFor();
  await form.getByRole('textbox', { name: 'limit' }).fill('501');
  await form.getByRole('button', { name: 'Send' }).click();
  await form.locator('code', { hasText: 'pagination_error' }).waitFor();
  await picture('docs-reference-tried');
  // The browser itself calls a refused request an error on its console.
  clean(/^console: Failed to load resource: .* 400/);
  await close();
});

test('without script every page reads, and offers nothing that it can not do', async () => {
  const { page, clean, close } = await look(browser, server.base, { javaScript: false });
  await page.goto(`${server.base}/docs`);
  await page.getByRole('link', { name: 'Filters' }).first().click();
  await page.waitForURL(/filters/);
  await page.getByRole('link', { name: 'API reference' }).first().click();
  await page.waitForURL(/reference/);
  assert.ok(await page.locator('code:visible', { hasText: 'discount_multiplier' }).first().isVisible());
  await page.getByRole('link', { name: 'List products' }).first().click();
  await page.waitForURL(/listProducts/);
  assert.ok(await page.getByRole('heading', { name: 'List products' }).isVisible());
  // All languages are there, each with its name; the search is a form.
  for (const name of LANGUAGES) assert.ok(await page.locator('.tab-name:visible', { hasText: new RegExp(`^${name}$`) }).isVisible());
  assert.deepEqual(await page.getByRole('button').allInnerTexts(), ['Search']);
  await page.getByRole('searchbox').fill('rate limit');
  await page.keyboard.press('Enter');
  await page.waitForURL(/search\?q=rate\+limit/);
  await page.locator('.results').getByRole('link', { name: 'rate_limited' }).first().click();
  await page.waitForURL(/errors\/rate_limited/);
  for (const path of PAGES) {
    await page.goto(`${server.base}/docs${path}`);
    assert.ok(await page.locator('.docs-body').isVisible());
  }
  clean();
  await close();
});

test('tabs of languages: one choice for all pages, remembered, by arrow keys', async () => {
  const { page, clean, picture, accessible, close } = await look(browser, server.base);
  await page.goto(`${server.base}/docs/reference/getProduct`);
  const list = page.getByRole('tablist').last();
  assert.deepEqual(await list.getByRole('tab').allInnerTexts(), LANGUAGES);
  const shown = () => page.getByRole('tabpanel').locator('code:visible').allInnerTexts();
  assert.ok((await shown()).every((code) => code.startsWith('curl ')));
  const tab = (name) => list.getByRole('tab', { name });
  await tab('Python').click();
  assert.equal(await tab('Python').getAttribute('aria-selected'), 'true');
  assert.ok((await shown()).every((code) => code.includes('urllib.request')));
  await page.keyboard.press('ArrowRight');
  assert.ok(await tab('Go').evaluate((own) => own === document.activeElement));
  assert.ok((await shown()).every((code) => code.startsWith('package main')));
  await page.keyboard.press('End');
  await page.keyboard.press('ArrowRight');
  assert.ok((await shown()).every((code) => code.startsWith('curl ')));
  await page.keyboard.press('ArrowLeft');
  assert.ok((await shown()).every((code) => code.startsWith("require 'net/http'")));
  // A single stop for the key Tab.
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Tab');
  assert.ok(await tab('Ruby').evaluate((own) => own === document.activeElement));
  await picture('docs-tabs');
  await accessible();
  await page.reload();
  assert.equal(await tab('Ruby').getAttribute('aria-selected'), 'true');
  await page.goto(`${server.base}/docs/recipes`);
  assert.equal(await page.getByRole('tab', { name: 'Ruby' }).getAttribute('aria-selected'), 'true');
  // Links of before there were tabs lead to theirs; that is no choice.
  await page.goto(`${server.base}/docs/recipes#php`);
  assert.equal(await page.getByRole('tab', { name: 'PHP' }).getAttribute('aria-selected'), 'true');
  assert.equal(await page.evaluate(() => localStorage.getItem('vitrine-language')), 'Ruby');
  clean();
  await close();
});

test('tabs work where the browser refuses to remember', async () => {
  const { page, clean, close } = await look(browser, server.base);
  await page.addInitScript(() => Object.defineProperty(window, 'localStorage', { get: () => { throw new Error('refused'); } }));
  await page.goto(`${server.base}/docs`);
  await page.getByRole('tab', { name: 'PHP' }).click();
  assert.ok((await page.getByRole('tabpanel').locator('code:visible').first().innerText()).startsWith('<?php'));
  await page.reload();
  assert.equal(await page.getByRole('tab', { name: 'curl' }).getAttribute('aria-selected'), 'true');
  clean();
  await close();
});

test('the page of an operation: values come from answers, whatever the catalog has', async () => {
  const { page, clean, close } = await look(browser, server.base);
  await page.goto(`${server.base}/docs/reference/getText`);
  await page.getByLabel('Your key, to try things on this page').fill(key);
  await run(page, 'export DIGEST');
  const text = await run(page, '/texts/$DIGEST.md');
  assert.match(await text.innerText(), /200[^]*text\/markdown/);
  clean();
  await close();
});

for (const as of ['light', 'phone']) {
  test(`search by keyboard (${as})`, async () => {
    const { page, clean, picture, accessible, close } = await look(browser, server.base, { as });
    await page.goto(`${server.base}/docs/paging`);
    await page.keyboard.press('/');
    const field = page.getByRole('combobox', { name: 'Search the documentation' });
    assert.ok(await field.evaluate((own) => own === document.activeElement));
    await page.keyboard.type('countries_redeemable_in');
    const options = page.getByRole('option');
    // Results of a part of the word may come first.
    await page.waitForFunction(() => /countries_redeemable_in[^]*List products/.test(document.querySelector('[role=option]')?.innerText));
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowUp');
    assert.equal(await options.first().getAttribute('aria-selected'), 'true');
    assert.equal(await field.getAttribute('aria-activedescendant'), await options.first().getAttribute('id'));
    await picture('docs-search');
    await accessible();
    await page.keyboard.press('Escape');
    assert.ok(!(await options.first().isVisible()));
    assert.equal(await field.inputValue(), 'countries_redeemable_in');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForURL(/reference\/listProducts#parameter-countries_redeemable_in/);
    // Without a choice, Enter leads to the page of all results.
    await page.keyboard.press('/');
    await page.keyboard.type('webhook');
    await page.keyboard.press('Enter');
    await page.waitForURL(/search\?q=webhook/);
    assert.ok(await page.locator('.results').isVisible());
    await page.keyboard.press('/');
    await page.keyboard.type('xyzzy');
    await page.getByText('Nothing has all of these words.').first().waitFor();
    // A page that is left ends its request for results.
    clean(/^failed: .*search\?q=.* net::ERR_ABORTED/);
    await close();
  });
}

test('by keyboard: the way to the content, and through a page', async () => {
  const { page, close } = await look(browser, server.base);
  await page.goto(`${server.base}/docs/paging`);
  await page.keyboard.press('Tab');
  const skip = page.getByRole('link', { name: 'Skip to the content' });
  assert.ok(await skip.evaluate((link) => link === document.activeElement));
  assert.ok((await skip.boundingBox()).y >= 0);
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  assert.ok(await page.evaluate(() => document.querySelector('main').contains(document.activeElement)));
  await close();
});

for (const as of Object.keys(LOOKS)) {
  describe(as, () => {
    // One page for all: a browser that has compiled the scripts once takes less than half the time.
    let reader;
    before(async () => (reader = await look(browser, server.base, { as })));
    after(() => reader?.close());
    for (const path of PAGES) {
      test(`/docs${path}`, async () => {
        const { page, clean, accessible, picture } = reader;
        await page.goto(`${server.base}/docs${path}`);
        await picture(`docs${path.replaceAll(/[^a-z_A-Z]/g, '-')}`);
        await accessible();
        clean();
      });
    }
  });
}
