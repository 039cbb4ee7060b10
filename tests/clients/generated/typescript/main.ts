// Uses the client that openapi-generator makes of the OpenAPI document; `ci/generated-clients` runs this.
import assert from "node:assert/strict";
import {
  ApiErrorFromJSON,
  Configuration,
  GetProductContentEnum,
  type Product,
  ProductListToJSON,
  ProductsApi,
  ResponseError,
  ServiceApi,
} from "./client/index.js";

const { VITRINE_BASE: base, VITRINE_LATER: laterBase, VITRINE_KEY: key, VITRINE_PRODUCTS: count } = process.env;
const settings = (basePath: string | undefined) => new Configuration({ basePath, apiKey: key });
const products = new ProductsApi(settings(base));

async function everything(api: ProductsApi): Promise<Product[]> {
  const found: Product[] = [];
  let after: string | null | undefined;
  do {
    const page = await api.listProducts({ limit: 7, after: after ?? undefined });
    found.push(...page.catalog);
    after = page.pagination.cursors.after;
  } while (after != null);
  return found;
}

async function refused(request: Promise<unknown>): Promise<{ status: number; type: string; details: unknown }> {
  const error: unknown = await request.then(() => undefined, (reason: unknown) => reason);
  assert.ok(error instanceof ResponseError);
  const { type, details } = ApiErrorFromJSON(await error.response.json());
  return { status: error.response.status, type, details };
}

// Holds that all of a JSON value is in what the client makes of it, under the same names.
function contains(made: any, plain: any, path: string): void {
  if (plain === null || typeof plain !== "object") assert.equal(made ?? null, plain, path);
  else for (const [name, value] of Object.entries(plain)) contains(made[name], value, `${path}/${name}`);
}

// A walk, in which nothing is lost but what the client doesn't know: the details of a payout type added later.
const walked = await everything(products);
assert.equal(new Set(walked.map((product) => product.code)).size, Number(count));
const { raw, value } = await products.listProductsRaw({}).then(async (response) => ({
  raw: await response.raw.clone().json(),
  value: await response.value(),
}));
assert.deepEqual(value.catalog, walked);
const prepaid = raw.catalog.filter((product: any) => product.payout_type === "prepaid_card");
assert.ok(prepaid.length > 0);
for (const product of prepaid) {
  assert.ok(product.prepaid_card.assets);
  delete product.prepaid_card;
}
contains(ProductListToJSON(value), raw, "");

// Filters.
const found = (await products.listProducts({ countriesRedeemableIn: ["SE", "DK"], isOrderable: true })).catalog;
assert.ok(found.length > 2);
for (const product of found) {
  assert.ok(product.isOrderable && product.countriesRedeemableIn.some((country) => ["SE", "DK"].includes(country)));
}

// The three forms of texts.
const texts = async (content: GetProductContentEnum) => {
  const product = await products.getProduct({ productCode: "HALLOWMERE-GB", content });
  assert.ok(product.giftCard);
  return product.giftCard.contentResources;
};
const [url, md, html] = await Promise.all(Object.values(GetProductContentEnum).map(texts));
assert.match(url?.descriptionMarkdownUrl ?? "", /[0-9a-f]{64}\.md$/);
assert.match(url?.termsConsumerMarkdownUrl ?? "", /\.md$/);
assert.match(md?.descriptionMd ?? "", /\*\*Half day/);
assert.ok((md?.termsConsumerMd ?? "").length > 20);
assert.match(html?.descriptionHtml ?? "", /<li><strong>Half day/);
assert.ok((html?.termsConsumerHtml ?? "").length > 20);

// Errors.
const absent = await refused(products.getProduct({ productCode: "NONE" }));
assert.deepEqual([absent.status, absent.type], [404, "not_found"]);
const cursors = await refused(products.listProducts({ before: "A", after: "B" }));
assert.equal(cursors.type, "pagination_error");
assert.match(JSON.stringify(cursors.details), /mutually_exclusive/);
assert.equal((await new ServiceApi(settings(base)).headPingRaw({})).raw.status, 200);

// Values and fields added later.
const later = new ProductsApi(settings(laterBase));
assert.equal((await everything(later)).length, walked.length);
const answer = await later.getProductRaw({ productCode: "HALLOWMERE-GB" });
const details = await answer.raw.clone().json();
const grown = await answer.value();
assert.deepEqual([grown.state, grown.payoutType, grown.availability], ["RESTING", "meal_voucher", "on-demand"]);
assert.equal(details.meal_voucher.meals, 5);
assert.equal(details.gift_card.courier.days, 3);
assert.equal((await refused(later.getProduct({ productCode: "NONE" }))).type, "added_later");

console.log(`TypeScript: ${walked.length} products walked, filters, three forms, errors, values added later`);
