// The watch itself: what it must not miss. A test that watches with it could never fail otherwise.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { launch, look } from './harness.js';

const faulty = `<!doctype html><html lang="en"><title>Faulty</title><link rel="icon" href="data:,">
<h1>Faulty</h1><p style="color: red">Red</p><img src="http://127.0.0.2:9/far.png"><div style="width: 3000px">wide</div>
<script src="/own.js"></script>`;

let browser, site, origin;

before(async () => {
  site = createServer((request, answer) => {
    const isScript = request.url === '/own.js';
    answer.setHeader('content-type', isScript ? 'text/javascript' : 'text/html; charset=utf-8');
    answer.setHeader('content-security-policy', "default-src 'self'; img-src *; style-src 'none'");
    answer.end(isScript ? 'nobody.there();' : faulty);
  });
  await new Promise((resolve) => site.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${site.address().port}`;
  browser = await launch();
});

after(async () => {
  await browser?.close();
  site.close();
});

test('nothing that a page does wrong is missed', async () => {
  const { page, clean, accessible, close } = await look(browser, origin);
  await page.goto(`${origin}/`);
  assert.throws(clean, (error) => {
    for (const kind of ['other origin:', 'failed:', 'policy: style-src', 'script:', 'console:']) {
      assert.ok(error.message.includes(kind), `${kind} isn't in ${error.message}`);
    }
    return true;
  });
  await assert.rejects(accessible, /image-alt/);
  await close();
});
