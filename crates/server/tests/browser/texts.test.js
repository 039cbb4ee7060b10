// HTML of hostile texts in Chromium, as a partner's page shows it: nothing runs, nothing but harmless elements comes out.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launch, root, sample, serve } from './harness.js';

const ALLOWED = 'A BLOCKQUOTE BR CODE DEL EM H1 H2 H3 H4 H5 H6 HR IMG LI OL P PRE STRONG TABLE TBODY TD TH THEAD TR UL';
const lines = (file) => readFileSync(file, 'utf8').trim().split('\n').map((line) => JSON.parse(line));
const vectors = lines(path.join(root, 'fixtures/hostile-markdown.ndjson'));

let browser, server, key;

before(async () => {
  const card = lines(sample).find((product) => product.payout_type === 'gift_card');
  const product = ({ markdown }, index) => {
    const texts = { description_md: `Visible\n\n${markdown}`, disclaimer_md: `<p>Visible</p>\n<div>${markdown}` };
    return JSON.stringify({ ...card, code: `V${index}`, gift_card: { ...card.gift_card, content_resources: texts } });
  };
  const file = path.join(tmpdir(), `vitrine-hostile-${process.pid}.ndjson`);
  writeFileSync(file, vectors.map(product).join('\n'));
  browser = await launch();
  server = await serve({ files: [file] });
  key = server.key();
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

test('hostile texts run nothing in a page without a policy', async () => {
  const page = await browser.newPage();
  const dialogs = [];
  page.on('dialog', (dialog) => dialogs.push(dialog.message()) && dialog.dismiss());
  await page.route('**', (route) => route.abort());
  await page.setContent('<div id="text"></div>');
  for (const [index, { name }] of vectors.entries()) {
    const reply = await fetch(`${server.base}/v2/product/V${index}?content=html`, { headers: { 'X-Api-Key': key } });
    const { description_html: markdown, disclaimer_html: html } = (await reply.json()).gift_card.content_resources;
    for (const text of [markdown, html]) {
      const faults = await page.evaluate(([text, allowed]) => {
        const place = document.getElementById('text');
        place.innerHTML = text;
        // Once more, as editors and templates do.
        place.innerHTML = place.innerHTML;
        const found = [];
        for (const element of place.querySelectorAll('*')) {
          if (!allowed.includes(element.tagName)) found.push(element.tagName);
          for (const { name } of element.attributes) {
            if (/^on|^style$|^id$/.test(name)) found.push(`${element.tagName} ${name}`);
          }
          if (element.href && !/^(https?|mailto|tel):$/.test(element.protocol)) found.push(element.href);
        }
        return found;
      }, [text, ALLOWED.split(' ')]);
      assert.deepEqual(faults, [], `${name}: ${text}`);
    }
  }
  assert.deepEqual(dialogs, []);
});
