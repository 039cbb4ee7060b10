// The table of products in Chromium: pages and orders, with and without script; keys; and the search as one types.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, look, serve } from './harness.js';

let browser, server;

before(async () => {
  browser = await launch();
  server = await serve({ generated: 250 });
  for (;;) {
    const page = await (await fetch(`${server.admin}/catalog`)).text();
    if (page.includes('<time')) break;
  }
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

const rows = (page) => page.locator('.products tbody tr');
const codes = (page) => page.locator('.products td.of-code').allInnerTexts();
const focused = (page) => page.evaluate(() => document.activeElement.closest('tr')?.querySelector('.of-code')?.innerText);
// Who goes on waits for no answer.
const LEFT = /^failed: .* net::ERR_ABORTED$/;

for (const javaScript of [true, false]) {
  const how = `${javaScript ? 'with' : 'without'} script`;

  test(`pages and orders are links, ${how}`, async () => {
    const { page, clean, close } = await look(browser, server.admin, { javaScript });
    await page.goto(`${server.admin}/catalog`);
    const all = await codes(page);
    assert.equal(all.length, 100);
    await page.getByRole('link', { name: 'Next' }).click();
    await page.waitForURL(/page=2$/);
    assert.match(await page.getByRole('status').innerText(), /101–200/);
    await page.getByRole('link', { name: 'Page 3' }).click();
    await page.waitForURL(/page=3$/);
    assert.equal(await rows(page).count(), 50);
    await page.getByRole('link', { name: 'Page 1' }).click();
    await page.waitForURL(/\/catalog$/);
    assert.deepEqual(await codes(page), all);
    await page.getByRole('columnheader', { name: 'Name' }).getByRole('link').click();
    await page.waitForURL(/sort=name$/);
    await page.getByRole('columnheader', { name: 'Name' }).getByRole('link').click();
    await page.waitForURL(/sort=-name$/);
    const names = (await page.locator('.products tbody .of-name a').allInnerTexts()).map((name) => name.toLowerCase());
    assert.deepEqual(names, names.toSorted().toReversed());
    assert.equal(await page.locator('th[aria-sort]').getAttribute('aria-sort'), 'descending');
    clean(LEFT);
    await close();
  });
}

test('a phone has a menu of orders', async () => {
  const { page, clean, close } = await look(browser, server.admin, { as: 'phone' });
  await page.goto(`${server.admin}/catalog`);
  await page.getByText('Sort: Code ↑').click();
  await page.getByRole('link', { name: 'Code ↓' }).click();
  await page.waitForURL(/sort=-code$/);
  const shown = await codes(page);
  assert.deepEqual(shown, shown.toSorted().toReversed());
  clean(LEFT);
  await close();
});

test('keys search, move, open and explain themselves', async () => {
  const { page, clean, close } = await look(browser, server.admin);
  await page.goto(`${server.admin}/catalog`);
  const all = await codes(page);
  await page.keyboard.press('j');
  assert.equal(await focused(page), all[0]);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('j');
  assert.equal(await focused(page), all[2]);
  await page.keyboard.press('k');
  await page.keyboard.press('ArrowUp');
  assert.equal(await focused(page), all[0]);
  // Nothing can be selected here.
  await page.keyboard.press('x');
  await page.keyboard.press('?');
  const help = page.getByRole('dialog', { name: 'Keys' });
  assert.ok(await help.isVisible());
  assert.equal(await help.getByText('Select the product').isVisible(), false);
  await page.keyboard.press('Escape');
  assert.equal(await help.isVisible(), false);
  await page.keyboard.press('/');
  await page.keyboard.type('j?/');
  assert.equal(await page.getByLabel('Name or code').inputValue(), 'j?/');
  await page.waitForURL(/q=j/);
  await page.keyboard.press('Escape');
  await page.goto(`${server.admin}/catalog`);
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await page.waitForURL(new RegExp(`/catalog/${all[0]}$`));
  clean(LEFT);
  await close();
});

test('search applies as one types, and the way back leads to what was there', async () => {
  const { page, clean, close } = await look(browser, server.admin);
  await page.goto(`${server.admin}/catalog`);
  const all = await codes(page);
  const field = page.getByLabel('Name or code');
  await field.pressSequentially(all[5]);
  await page.waitForFunction((code) => {
    const shown = [...document.querySelectorAll('.products td.of-code')].map((cell) => cell.innerText);
    return shown.length > 0 && shown.every((one) => one.includes(code));
  }, all[5]);
  assert.ok(await field.evaluate((one) => one === document.activeElement));
  // What was typed first may have been shown, too.
  await page.waitForFunction((code) => new URL(location.href).searchParams.get('q') === code, all[5]);
  await page.goBack();
  await page.waitForFunction(() => document.querySelectorAll('.products tbody tr').length === 100);
  assert.equal(await field.inputValue(), '');
  clean(LEFT);
  await close();
});
