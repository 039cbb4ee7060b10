// Assortments in the console, in Chromium: the editor with and without script, its faults as one types, its guard, a stale edit, and
// the pages around it, in all looks. No page may ask another origin or break the policy, and axe must find nothing serious.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { LOOKS, launch, look, serve } from './harness.js';

let browser, server, password;

before(async () => {
  browser = await launch();
  server = await serve();
  ({ password } = JSON.parse(server.run('operators', 'add', 'ines', '--role', 'owner', '--generate', '--json')));
  set('nordic', { allow: [{ countries: ['SE', 'NO', 'GB'] }] });
  server.key('--assortment', 'nordic');
  server.run('set', 'BRIARWICK-GB', 'discount_multiplier=0.02', '--from', '2h', '--until', '3d');
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

/** Sets rules by the command, as somebody else. */
function set(name, rules) {
  const file = path.join(tmpdir(), `vitrine-rules-${process.pid}.json`);
  writeFileSync(file, JSON.stringify(rules));
  server.run('assortments', 'set', name, file, '--allow', 'retire=100%');
}

const live = (name) => JSON.parse(server.run('assortments', 'show', name));

async function signIn(page, target) {
  await page.goto(server.admin + target);
  await page.waitForURL(/\/sign-in\?next=/);
  await page.fill('#name', 'ines');
  await page.fill('#password', password);
  await page.keyboard.press('Enter');
  await page.waitForURL(server.admin + target);
}

for (const as of Object.keys(LOOKS)) {
  test(`pages of assortments are accessible: ${as}`, async () => {
    const { page, accessible, picture, clean, close } = await look(browser, server.admin, { as });
    await signIn(page, '/assortments');
    for (const [name, target] of Object.entries({
      list: '/assortments',
      one: '/assortments/nordic',
      new: '/acts/set-assortment',
      editor: '/acts/set-assortment?name=nordic',
      'roll-back': '/acts/roll-back-assortment?assortment=nordic&version=1',
      overrides: '/overrides',
    })) {
      await page.goto(server.admin + target);
      await accessible();
      await picture(`assortments-${name}`);
    }
    await page.goto(`${server.admin}/acts/set-assortment?name=nordic`);
    await page.fill('#rules', '{"allow": [\n  {"countries": ["SE", "UK"]},\n  {"codez": ["A"]}\n]}');
    await page.waitForSelector('#answer .faults');
    await accessible();
    await picture('assortments-faults');
    await page.fill('#rules', '{"allow": [\n  {"countries": ["SE"]},\n  {"codes": ["NOT-THERE"]}\n]}');
    await page.waitForSelector('#answer .listing');
    await accessible();
    await picture('assortments-refused');
    await page.fill('#allow', 'retire=100%');
    await page.waitForSelector('text=Save what was checked');
    await accessible();
    await picture('assortments-plan');
    clean();
    await close();
  });
}

for (const javaScript of [true, false]) {
  test(`an assortment is edited, ${javaScript ? 'with' : 'without'} script`, async () => {
    const name = javaScript ? 'scripted' : 'plain';
    set(name, { allow: [{ countries: ['SE', 'GB'] }] });
    const { page, clean, close } = await look(browser, server.admin, { javaScript });
    await signIn(page, `/acts/set-assortment?name=${name}`);
    /** Fills the rules in; with script, nothing needs to be pressed. */
    const write = async (rules, expected) => {
      await page.fill('#rules', rules);
      if (!javaScript) await page.click('text="Check"');
      await page.waitForSelector(`#answer >> text=${expected}`);
      return page.textContent('#answer');
    };
    const faulty = await write('{"allow": [\n  {"countries": ["SE", "UK"]},\n  {"codez": []}\n]}', '2 faults');
    assert.match(faulty, /Line 2 allow\[0\]\.countries\[1\] .*did you mean GB/s);
    assert.match(faulty, /Line 3 allow\[1\]\.codez unknown member; did you mean codes/);
    await page.click('#answer >> text=Line 3');
    if (javaScript) {
      const selected = await page.evaluate(() => {
        const { value, selectionStart, selectionEnd } = document.querySelector('#rules');
        return value.slice(selectionStart, selectionEnd);
      });
      assert.equal(selected, '  {"codez": []}');
    }
    const refused = await write('{"allow": [{"countries": ["SE"]}]}', 'The guard refuses it');
    assert.match(refused, /0 products gained, \d+ lost/);
    await page.click('#answer >> text=/^Allow retire=/');
    await page.waitForSelector('#answer >> text=Save what was checked');
    // Somebody else is faster.
    set(name, { allow: [{ countries: ['SE', 'NO'] }] });
    await page.click('text=Save what was checked');
    await page.waitForSelector('#answer >> text=version 2 is live');
    assert.deepEqual(live(name), { allow: [{ countries: ['SE', 'NO'] }] });
    await page.click('text=Check against version 2');
    await page.waitForSelector('#answer >> text=Save what was checked');
    await page.click('text=Save what was checked');
    await page.waitForSelector('[role=status] >> text=Version 3');
    assert.deepEqual(live(name), { allow: [{ countries: ['SE'] }] });
    await page.click('text=Undo: roll back to the version before');
    await page.click('text=Do it');
    await page.waitForSelector('[role=status] >> text=Version 4');
    assert.deepEqual(live(name), { allow: [{ countries: ['SE', 'NO'] }] });
    // Chromium reports a status of 4xx as an error, also of a form that is shown again.
    clean(/status of 409/);
    await close();
  });
}
