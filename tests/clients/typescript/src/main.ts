// Uses a client made from the served OpenAPI document: lists, filters, pages, reads a product in all forms,
// meets errors and values added later. `ci/clients` makes `api.d.ts` and runs this.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

type Product = components["schemas"]["Product"];

function environment(name: string): string {
  const value = process.env[name];
  assert.ok(value, `${name} is set`);
  return value;
}

const base = environment("VITRINE_BASE");
const key = environment("VITRINE_KEY");
const client = createClient<paths>({ baseUrl: base, headers: { "X-Api-Key": key } });

// Lists and filters.
const orderable = await client.GET("/product", {
  params: { query: { countries_redeemable_in: ["SE", "DK"], is_orderable: true, limit: 50 } },
});
assert.ok(orderable.data, "a page");
assert.ok(orderable.data.catalog.length > 2);
for (const product of orderable.data.catalog) {
  assert.ok(product.is_orderable, product.code);
  assert.ok(product.countries_redeemable_in.some((country) => ["SE", "DK"].includes(country)), product.code);
}
const categories = (await client.GET("/product/categories")).data?.categories ?? [];
const countries = (await client.GET("/product/countries")).data?.countries ?? [];
assert.ok(categories.some((category) => category.code === "fashion") && countries.includes("GB"));
const fashion = await client.GET("/product", { params: { query: { categories: ["fashion"] } } });
assert.ok(fashion.data?.catalog.every((product) => product.categories.includes("fashion")));

// Pages through everything, a few products at a time.
async function everything(limit: number): Promise<Product[]> {
  const products: Product[] = [];
  let after: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof read>> = await read(limit, after);
    products.push(...page.catalog);
    after = page.pagination.cursors.after;
  } while (after !== null);
  return products;
}
async function read(limit: number, after: string | null) {
  const query = after === null ? { limit } : { limit, after };
  const { data, error } = await client.GET("/product", { params: { query } });
  assert.equal(error, undefined);
  assert.ok(data);
  return data;
}
const products = await everything(7);
const whole = (await read(500, null)).catalog.map((product) => product.code);
assert.deepEqual(products.map((product) => product.code), whole);
assert.equal(new Set(whole).size, Number(environment("VITRINE_PRODUCTS")));

// Every product is readable by the types, whatever its payout type.
function amounts(product: Product): string {
  switch (product.payout_type) {
    case "gift_card": {
      const { minimum_value, maximum_value } = product.gift_card!.denominations;
      return `${minimum_value} to ${maximum_value}`;
    }
    case "subscription":
      return product.subscription!.subscription_plans.map((plan) => plan.price).join(", ");
    case "payment":
      return `from ${product.payment!.denominations.minimum_value}`;
    default:
      return "of a kind added later";
  }
}
const kinds = new Set(products.map((product) => product.payout_type));
assert.deepEqual([...kinds].sort(), ["gift_card", "payment", "prepaid_card", "subscription"]);
assert.ok(products.every((product) => amounts(product).length > 2));
const later = products.find((product) => product.payout_type === "prepaid_card");
assert.ok(later && typeof (later as Record<string, unknown>)[later.payout_type] === "object");

// A product in all three forms, and a text by its address.
async function content(form: "url" | "md" | "html") {
  const { data } = await client.GET("/product/{product_code}", {
    params: { path: { product_code: "HALLOWMERE-GB" }, query: { content: form } },
  });
  assert.ok(data?.gift_card, "a gift card");
  return data.gift_card.content_resources;
}
const [url, md, html] = [await content("url"), await content("md"), await content("html")];
assert.ok("description_markdown_url" in url && "description_md" in md && "description_html" in html);
assert.match(html.description_html ?? "", /<li><strong>Half day/);
const digest = /([0-9a-f]{64})\.md$/.exec(url.description_markdown_url ?? "")?.[1];
assert.ok(digest, "an address of a text");
const text = await client.GET("/texts/{digest}.md", { params: { path: { digest } }, parseAs: "text" });
assert.equal(text.data, md.description_md);

// What is known isn't sent again.
const first = await client.GET("/ping");
assert.equal(first.data?.message, "pong");
const again = await client.GET("/ping", {
  params: { header: { "If-None-Match": first.response.headers.get("ETag")! } },
});
assert.equal(again.response.status, 304);

// Errors are typed too.
const absent = await client.GET("/product/{product_code}", { params: { path: { product_code: "NONE" } } });
assert.equal(absent.response.status, 404);
assert.equal(absent.error?.type, "not_found");
const refused = await client.GET("/product", { params: { query: { limit: 0 } } });
assert.equal(refused.response.status, 400);
assert.deepEqual(refused.error?.details?.[0]?.location, ["query", "limit"]);
assert.equal(refused.error?.details?.[0]?.type, "out_of_range");
const stranger = createClient<paths>({ baseUrl: base });
assert.equal((await stranger.GET("/ping")).error?.type, "unauthorized");

// A later server: values that this client can't know. The first lines hold that the types take them.
const grown = { state: "RESTING", availability: "on-demand", payout_type: "meal_voucher" } satisfies Partial<Product>;
const fault: components["schemas"]["ApiError"] = { type: "on_strike", message: "no", help: null };
const sample = products.find((product) => product.code === "HALLOWMERE-GB");
assert.ok(sample?.gift_card);
const changed = { ...sample.gift_card, barcode_format: "aztec", redeemable_at: "by-phone", courier: { days: 3 } };
const server = createServer((request, response) => {
  const found = request.url === "/product/GROWN";
  response.writeHead(found ? 200 : 418, { "Content-Type": "application/json" });
  response.end(JSON.stringify(found ? { ...sample, ...grown, gift_card: changed, meal_voucher: { meals: 5 } } : fault));
});
await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
const { port } = server.address() as AddressInfo;
const laterClient = createClient<paths>({ baseUrl: `http://127.0.0.1:${port}` });
const odd = await laterClient.GET("/product/{product_code}", { params: { path: { product_code: "GROWN" } } });
assert.equal(odd.data?.state, "RESTING");
assert.equal(odd.data.gift_card?.barcode_format, "aztec");
assert.equal(amounts(odd.data), "of a kind added later");
assert.equal((await laterClient.GET("/ping")).error?.type, "on_strike");
server.closeAllConnections();
server.close();

console.log(`TypeScript: ${products.length} products paged, all forms, errors, values added later`);
