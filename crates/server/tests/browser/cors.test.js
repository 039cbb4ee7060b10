// Pages of other origins: Chromium itself decides what they may read.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { launch, serve } from './harness.js';

let named, other, server, browser, key;

/** Serves an empty page on a port of its own, which makes it an origin of its own. */
async function origin() {
  const pages = createServer((_, answer) => answer.writeHead(200, { 'Content-Type': 'text/html' }).end('<!doctype html>'));
  await new Promise((listening) => pages.listen(0, '127.0.0.1', listening));
  return { url: `http://127.0.0.1:${pages.address().port}`, stop: () => pages.close() };
}

before(async () => {
  named = await origin();
  other = await origin();
  server = await serve({ options: ['--cors-origins', named.url] });
  key = server.key();
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await server?.stop();
  named?.stop();
  other?.stop();
});

/** Fetches from a page of `from`; returns what its script can read, or null where the browser refuses. */
async function read(from, path, headers = {}) {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(from.url);
  const seen = await page.evaluate(async ([url, headers]) => {
    try {
      const answer = await fetch(url, { headers, cache: 'no-store' });
      const names = ['etag', 'link', 'x-request-id', 'x-api-version', 'ratelimit', 'retry-after'];
      const exposed = Object.fromEntries(names.map((name) => [name, answer.headers.get(name)]));
      return { status: answer.status, body: await answer.text(), exposed };
    } catch {
      return null;
    }
  }, [`${server.base}${path}`, headers]);
  await context.close();
  return seen;
}

test('a page of a named origin reads the catalog with a key', async () => {
  const headers = { 'X-Api-Key': key, 'X-Api-Version': '2024-02-05' };
  const page = await read(named, '/v2/product?limit=1', headers);
  assert.equal(page.status, 200);
  assert.equal(JSON.parse(page.body).catalog.length, 1);
  assert.match(page.exposed.etag, /^W\//);
  assert.match(page.exposed.link, /rel="next"/);
  assert.equal(page.exposed['x-api-version'], '2024-02-05');
  assert.ok(page.exposed['x-request-id']);
  const unchanged = await read(named, '/v2/product?limit=1', { ...headers, 'If-None-Match': page.exposed.etag });
  assert.equal(unchanged.status, 304);
});

test('a page of a named origin reads errors', async () => {
  for (const [path, headers, status] of [
    ['/v2/product', {}, 401],
    ['/v2/product', { 'X-Api-Key': 'wrong.key' }, 401],
    ['/v2/product?page=2', { 'X-Api-Key': key }, 400],
    ['/v2/products', { 'X-Api-Key': key }, 404],
  ]) {
    const error = await read(named, path, headers);
    assert.equal(error?.status, status, path);
    assert.ok(JSON.parse(error.body).type, path);
  }
});

test('a page of another origin reads nothing that needs a key', async () => {
  assert.equal(await read(other, '/v2/product?limit=1', { 'X-Api-Key': key }), null);
  assert.equal(await read(other, '/v2/ping'), null);
});

test('a page of any origin reads texts and the OpenAPI document', async () => {
  const catalog = await read(named, '/v2/product', { 'X-Api-Key': key });
  const [path] = /\/v2\/texts\/[0-9a-f]{64}\.md/.exec(catalog.body);
  for (const from of [named, other]) {
    for (const public_ of [path, '/openapi.json']) {
      assert.equal((await read(from, public_))?.status, 200, `${from.url} ${public_}`);
    }
  }
});
