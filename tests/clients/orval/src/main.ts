// Uses the client that orval makes of the served OpenAPI document; `ci/clients` makes `api.ts` and runs this.
import assert from "node:assert/strict";
import {
  getProduct,
  listCategories,
  listChanges,
  listCountries,
  listProducts,
  ping,
  type ApiError,
  type GetProductContent,
  type ListProductsParams,
  type Product,
} from "./api.js";

const options = { headers: { "X-Api-Key": process.env.VITRINE_KEY ?? "" } };

async function page(params: ListProductsParams) {
  const { status, data } = await listProducts(params, options);
  assert.ok(status === 200, JSON.stringify(data));
  return data;
}

// A walk.
async function everything(): Promise<Product[]> {
  const found: Product[] = [];
  let after: string | null = null;
  do {
    const next: Awaited<ReturnType<typeof page>> = await page(after === null ? { limit: 7 } : { limit: 7, after });
    found.push(...next.catalog);
    after = next.pagination.cursors.after;
  } while (after !== null);
  return found;
}
const walked = await everything();
assert.equal(new Set(walked.map((product) => product.code)).size, Number(process.env.VITRINE_PRODUCTS));
assert.deepEqual((await page({})).catalog, walked);

// Filters: each is a list of texts or a text, not `any`.
const filters = { countries_redeemable_in: ["SE", "DK"], payout_types: ["gift_card"], is_orderable: true };
const found = (await page(filters satisfies ListProductsParams)).catalog;
assert.ok(found.length > 2);
assert.ok(found.every((product) => product.is_orderable && product.payout_type === "gift_card"));
// @ts-expect-error: a number is no code.
const misspelt: ListProductsParams = { codes: [1] };
assert.ok(misspelt);
const cart = await page({ codes: ["HALLOWMERE-GB", "TONVIK-SE"] });
assert.deepEqual(cart.catalog.map((product) => product.code), ["HALLOWMERE-GB", "TONVIK-SE"]);

// The changes feed, categories and countries.
const changes = await listChanges({ limit: 2 }, options);
assert.ok(changes.status === 200 && changes.data.has_more && changes.data.next.length > 10);
const categories = await listCategories(options);
assert.ok(categories.status === 200 && categories.data.categories.length > 2);
const countries = await listCountries(options);
assert.ok(countries.status === 200 && countries.data.countries.includes("GB"));
const pong = await ping(options);
assert.ok(pong.status === 200 && pong.data.message === "pong");

// The three forms of texts.
async function texts(content: GetProductContent) {
  const { status, data } = await getProduct("HALLOWMERE-GB", { content }, options);
  assert.ok(status === 200 && data.gift_card);
  return data.gift_card.content_resources;
}
assert.match((await texts("url")).description_markdown_url ?? "", /[0-9a-f]{64}\.md$/);
assert.match((await texts("md")).description_md ?? "", /\*\*Half day/);
assert.match((await texts("html")).description_html ?? "", /<li><strong>Half day/);

// Errors.
const absent = await getProduct("NONE", {}, options);
assert.ok(absent.status === 404 && (absent.data as ApiError).type === "not_found");
const refused = await listProducts({ before: "A", after: "B" }, options);
assert.ok(refused.status === 400);
assert.equal(refused.data.details?.[0]?.type, "mutually_exclusive");

console.log(`orval: ${walked.length} products walked, filters, changes, three forms, errors`);
