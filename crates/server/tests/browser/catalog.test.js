// The catalog browser on the admin port, in Chromium: search, filters, a product, differences, keys; in light and dark, on
// a phone, and without script. No page may ask another origin or break the policy, and axe must find nothing serious.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { LOOKS, launch, look, sample, serve } from './harness.js';

let browser, server;

before(async () => {
  browser = await launch();
  server = await serve();
  // A second load: one product is renamed, priced and sold elsewhere, one is gone.
  // Other lines stay to the letter: JavaScript would write their numbers otherwise.
  const lines = readFileSync(sample, 'utf8').trim().split('\n');
  const changed = JSON.parse(lines.find((line) => line.includes('"code": "PANDANLANE-SG"')));
  changed.name = 'Pandanlane Street Food Pass';
  changed.countries_redeemable_in = ['SG', 'MY'];
  changed.gift_card.denominations.maximum_value = '100.00';
  changed.gift_card.denominations.available_list.push('100.00');
  const kept = lines.filter((line) => !/"code": "(LIFTBELL-US|PANDANLANE-SG)"/.test(line));
  const folder = mkdtempSync(path.join(tmpdir(), 'vitrine-second-'));
  const file = path.join(folder, 'second.ndjson');
  writeFileSync(file, [...kept, JSON.stringify(changed)].join('\n'));
  server.run('load', '--note', 'Autumn prices', file);
  const rules = path.join(folder, 'nordic.json');
  writeFileSync(rules, JSON.stringify({ allow: [{ codes: ['PANDANLANE-SG', 'STARLOFT-EU'] }], discounts: [{ set: '0.0125' }] }));
  server.run('assortments', 'set', 'nordic', rules);
  server.run('disable', 'STARLOFT-EU', '--until', '4h', '--note', 'the issuer is down');
  const [prefix] = server.key('--quota', '100/60', '--assortment', 'nordic').split('.');
  const keyFile = path.join(folder, 'webhooks.key');
  const webhook = ['--webhook-key-file', keyFile, '--webhook-networks', '127.0.0.0/8', '--json'];
  PAGES.webhook = `/webhooks/${JSON.parse(server.run('webhooks', 'create', '--key', prefix, '--url', 'http://127.0.0.1:9/', ...webhook)).id}`;
  rmSync(folder, { recursive: true });
  server.run('keys', 'create', '--label', 'old partner', '--test');
  server.run('keys', 'revoke', 'old partner');
  for (;;) {
    const page = await (await fetch(`${server.admin}/catalog/PANDANLANE-SG`)).text();
    const held = await (await fetch(`${server.admin}/catalog/STARLOFT-EU`)).text();
    if (page.includes('Street Food') && page.includes('as=nordic') && held.includes('Temporarily disabled')) break;
  }
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

const PAGES = {
  home: '/',
  products: '/catalog',
  sorted: '/catalog?sort=-changed',
  filtered: '/catalog?country=US&orderable=yes&q=a',
  empty: '/catalog?q=nothing+of+the+kind&state=LIVE',
  assortment: '/catalog?as=nordic&orderable=yes',
  product: '/catalog/PANDANLANE-SG',
  texts: '/catalog/STARLOFT-EU',
  retired: '/catalog/LIFTBELL-US',
  revisions: '/revisions',
  revision: '/revisions/2',
  comparison: '/revisions/compare?from=1&to=3',
  overrides: '/overrides',
  audit: '/audit',
  keys: '/keys',
  webhooks: '/webhooks',
  missing: '/catalog/NO/SUCH/PAGE',
};

for (const as of Object.keys(LOOKS)) {
  test(`every page is readable and asks nobody else: ${as}`, async () => {
    const { page, clean, accessible, picture, close } = await look(browser, server.admin, { as });
    for (const [name, address] of Object.entries(PAGES)) {
      const answer = await page.goto(`${server.admin}${address}`);
      const isMissing = ['retired', 'missing'].includes(name);
      assert.equal(answer.status(), isMissing ? 404 : 200, address);
      await accessible();
      await picture(`browser-${name}`);
      // That the page itself isn't there is said on the console.
      clean(isMissing ? /^console: Failed to load resource: .* 404/ : undefined);
    }
    await close();
  });
}

test('long texts of a product are folded up, with their lengths', async () => {
  const { page, clean, close } = await look(browser, server.admin, { javaScript: false });
  await page.goto(server.admin + PAGES.texts);
  const text = page.locator('#texts details').first();
  assert.match(await text.locator('summary').innerText(), / [\d,]+ characters$/);
  assert.equal(await text.locator('.rendered').isVisible(), false);
  await text.locator('summary').click();
  assert.equal(await text.locator('.rendered').isVisible(), true);
  clean();
  await close();
});

for (const javaScript of [true, false]) {
  test(`a product is found and read, ${javaScript ? 'with' : 'without'} script`, async () => {
    const { page, clean, close } = await look(browser, server.admin, { javaScript });
    await page.goto(`${server.admin}/`);
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Products' }).click();
    await page.getByLabel('Name or code').fill('hawker STREET');
    // With script, typing is enough.
    if (!javaScript) await page.getByRole('button', { name: 'Search' }).click();
    await page.waitForURL(/q=hawker/);
    assert.equal(await page.getByRole('status').innerText(), 'No products found');
    await page.getByLabel('Name or code').fill('street pass');
    await page.keyboard.press('Enter');
    await page.waitForURL(/q=street\+pass/);
    assert.equal(await page.getByRole('status').innerText().then((text) => text.split(' ')[0]), '1');
    await page.getByRole('link', { name: 'Pandanlane Street Food Pass' }).click();
    await page.waitForURL(/PANDANLANE-SG$/);
    assert.equal(await page.getByRole('heading', { level: 1 }).innerText(), 'Pandanlane Street Food Pass');
    const history = page.locator('#history');
    assert.equal(await history.locator('del').first().innerText().then((text) => text.replace('−', '').trim()), 'Pandanlane Hawker Pass');
    assert.match(await history.innerText(), /Autumn prices/);
    await history.getByRole('link', { name: 'revision 2' }).click();
    assert.match(await page.locator('main').innerText(), /1 changed/i);
    clean(/^failed: .* net::ERR_ABORTED$/);
    await close();
  });

  test(`filters narrow, are in the address and are taken away, ${javaScript ? 'with' : 'without'} script`, async () => {
    const { page, clean, close } = await look(browser, server.admin, { javaScript });
    await page.goto(`${server.admin}/catalog`);
    const total = async () => Number((await page.getByRole('status').innerText()).split(' ')[0].replace(',', ''));
    const all = await total();
    const box = page.locator('label.filter', { has: page.locator('input[name="payout_type"][value="payment"]') });
    const count = Number((await box.locator('.count').innerText()).split(/\s/)[0]);
    await box.click();
    // With script the box is enough.
    if (!javaScript) await page.getByRole('button', { name: 'Apply filters' }).click();
    await page.waitForURL(/payout_type=payment/);
    assert.ok(count > 0 && count < all);
    assert.equal(await total(), count);
    assert.ok(await page.locator('input[type="checkbox"][value="payment"]').isChecked());
    await page.getByRole('link', { name: /Remove Payout type: Payment/ }).click();
    await page.waitForURL((url) => !url.search.includes('payout_type'));
    assert.equal(await total(), all);
    // Who goes on waits for no answer.
    clean(/^failed: .* net::ERR_ABORTED$/);
    await close();
  });
}

for (const javaScript of [true, false]) {
  test(`the catalog is seen as an assortment sees it, ${javaScript ? 'with' : 'without'} script`, async () => {
    const { page, clean, close } = await look(browser, server.admin, { javaScript });
    await page.goto(`${server.admin}/catalog`);
    await page.getByLabel('As this assortment sees it').fill('nordic');
    await page.keyboard.press('Enter');
    await page.waitForURL(/as=nordic/);
    assert.equal(await page.getByRole('heading', { level: 1 }).innerText(), 'Products as nordic sees them');
    assert.equal(await page.locator('.products tbody tr').count(), 2);
    assert.match(await page.locator('.products tbody tr').first().innerText(), /1\.25%/);
    await page.getByLabel('Name or code').fill('street');
    await page.keyboard.press('Enter');
    await page.waitForURL(/q=street/);
    assert.equal(await page.locator('.products tbody tr').count(), 1);
    await page.getByRole('link', { name: 'Remove “street”' }).click();
    await page.waitForURL(/as=nordic$/);
    await page.getByRole('link', { name: 'Remove As nordic sees it' }).click();
    await page.waitForURL(/\/catalog$/);
    await page.goto(`${server.admin}/keys`);
    await page.getByRole('link', { name: 'nordic' }).click();
    await page.waitForURL(/as=nordic$/);
    await page.getByRole('link', { name: 'Pandanlane Street Food Pass' }).click();
    await page.waitForURL(/PANDANLANE-SG\?as=nordic$/);
    assert.match(await page.locator('.facts').innerText(), /1\.25%\s+own/);
    await page.locator('#assortments').getByRole('link', { name: 'nordic' }).click();
    await page.waitForURL(/\/catalog\?as=nordic$/);
    clean(/^failed: .* net::ERR_ABORTED$/);
    await close();
  });
}

test('the keyboard reaches the content, and every product has one stop', async () => {
  const { page, close } = await look(browser, server.admin);
  await page.goto(`${server.admin}/catalog`);
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the content');
  await page.keyboard.press('Enter');
  const stops = await page.locator('.products tbody a').count();
  assert.equal(stops, await page.locator('.products tbody tr').count());
  await close();
});

test('a box that is ticked applies at once and keeps the focus', async () => {
  const { page, clean, close } = await look(browser, server.admin);
  await page.goto(`${server.admin}/catalog`);
  assert.equal(await page.getByRole('button', { name: 'Apply filters' }).isVisible(), false);
  await page.locator('input[type="checkbox"][name="payout_type"][value="payment"]').check({ noWaitAfter: true });
  await page.waitForURL(/payout_type=payment/);
  await page.waitForFunction(() => document.activeElement.value === 'payment');
  await page.keyboard.press('Space');
  await page.waitForURL((url) => !url.search.includes('payout_type'));
  clean(/^failed: .* net::ERR_ABORTED$/);
  await close();
});

test('filters that match nothing leave no lone button', async () => {
  const { page, close } = await look(browser, server.admin, { javaScript: false });
  await page.goto(`${server.admin}/catalog?q=nothing+of+the+kind`);
  assert.equal(await page.getByRole('button', { name: 'Apply filters' }).count(), 0);
  await close();
});

/** Asserts that an element lies within the width of the window. */
async function assertWithinWidth(page, locator, what) {
  const width = await page.evaluate(() => document.documentElement.clientWidth);
  const place = await locator.boundingBox();
  assert.ok(place && place.x >= 0 && place.x + place.width <= width, `${what}: ${JSON.stringify(place)} in ${width}`);
}

test('values after a change and states of keys are on the screen of a phone', async () => {
  const { page, clean, close } = await look(browser, server.admin, { as: 'phone' });
  await page.goto(`${server.admin}/revisions/2`);
  const after = await page.locator('.changes ins').all();
  assert.ok(after.length > 0);
  for (const one of after) await assertWithinWidth(page, one, 'a value after the change');
  await page.goto(`${server.admin}/keys`);
  const states = await page.locator('.rows .badge').all();
  assert.ok(states.length > 0);
  for (const one of states) await assertWithinWidth(page, one, 'the state of a key');
  clean();
  await close();
});
