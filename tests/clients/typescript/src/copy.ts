// Keeps a copy of a catalog that changes, by the loop of the changes feed, with a client made from the served OpenAPI
// document. `ci/clients` runs this.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

type Product = components["schemas"]["Product"];

const { VITRINE_CHANGING_BASE: baseUrl, VITRINE_CHANGING_KEY: key } = process.env;
assert.ok(baseUrl && key);
const client = createClient<paths>({ baseUrl, headers: { "X-Api-Key": key } });
const copy = new Map<string, Product>();
let token: string | undefined;
let answers = 0;
let removed = 0;

async function next(): Promise<boolean> {
  const query = token === undefined ? { limit: 20 } : { since: token, limit: 20, wait: 10 };
  const { data, error } = await client.GET("/product/changes", { params: { query } });
  assert.ok(data, JSON.stringify(error));
  for (const { code, product } of data.changes) {
    if (product === null) removed += Number(copy.delete(code));
    else copy.set(code, product);
  }
  token = data.next;
  answers += 1;
  return data.has_more;
}

async function isEqual(): Promise<boolean> {
  const { data } = await client.GET("/product");
  const sorted = [...copy.values()].sort((one, other) => (one.code < other.code ? -1 : 1));
  return JSON.stringify(data?.catalog) === JSON.stringify(sorted);
}

while (await next());
assert.ok(answers > 3, "several answers");
// A wait ends with a change: a product is renamed, another one removed, and then put back.
while ((await next()) || removed === 0 || !(await isEqual())) assert.ok(answers < 60, "equal at some time");
console.log(`TypeScript: a copy of ${copy.size} products, ${answers} answers, ${removed} removed`);
