// Keeps a copy of a catalog that changes, by the loop of the changes feed; `ci/generated-clients` runs this.
import assert from "node:assert/strict";
import { Configuration, type Product, ProductsApi } from "./client/index.js";

const { VITRINE_CHANGING_BASE: basePath, VITRINE_CHANGING_KEY: apiKey } = process.env;
const products = new ProductsApi(new Configuration({ basePath, apiKey }));
const copy = new Map<string, Product>();
let since: string | undefined;
let [answers, removed] = [0, 0];

async function next(): Promise<boolean> {
  const answer = await products.listChanges({ since, limit: 20, wait: since === undefined ? undefined : 10 });
  for (const { code, product } of answer.changes) {
    if (product === null) removed += Number(copy.delete(code));
    else copy.set(code, product);
  }
  since = answer.next;
  answers += 1;
  return answer.hasMore;
}

async function isEqual(): Promise<boolean> {
  const { catalog } = await products.listProducts();
  const sorted = [...copy.values()].sort((one, other) => (one.code < other.code ? -1 : 1));
  return JSON.stringify(catalog) === JSON.stringify(sorted);
}

while (await next());
assert.ok(answers > 3, "several answers");
// A wait ends with a change: a product is renamed, another one removed, and then put back.
while ((await next()) || removed === 0 || !(await isEqual())) assert.ok(answers < 60, "equal at some time");
console.log(`TypeScript: a copy of ${copy.size} products, ${answers} answers, ${removed} removed`);
