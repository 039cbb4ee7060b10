// Prints what can be ordered, in one country if COUNTRY names it, then one product with its texts.
const { VITRINE_URL: api, VITRINE_KEY: key, COUNTRY: country } = process.env;
const TRIES = 5;

class ApiError extends Error {
  constructor({ type, message, help }) {
    super(`${type}: ${message} (${help})`);
    this.type = type; // decide by this one
  }
}

async function get(path, query = []) {
  for (let attempt = 1; ; attempt += 1) {
    const response = await fetch(`${api}${path}?${new URLSearchParams(query)}`, {
      headers: { 'X-Api-Key': key },
      signal: AbortSignal.timeout(10_000),
    });
    if (response.ok) return response.json();
    if (![429, 503].includes(response.status) || attempt === TRIES) throw new ApiError(await response.json());
    const seconds = Number(response.headers.get('Retry-After') ?? 1) + Math.random();
    await new Promise((done) => setTimeout(done, 1000 * seconds));
  }
}

async function* products(filters) {
  for (let cursor = []; ; ) {
    const { catalog, pagination } = await get('/product', [...filters, ...cursor]);
    if (catalog.length === 0) return;
    yield* catalog;
    cursor = [['after', pagination.cursors.after]];
  }
}

function amounts(product) {
  const { subscription_plans: plans, denominations: range } = product[product.payout_type];
  if (plans) return plans.map((plan) => `${plan.name} ${plan.price}`);
  if (range.type === 'fixed') return range.available_list;
  return [`${range.minimum_value} to ${range.maximum_value}`];
}

const known = ['gift_card', 'subscription', 'payment'];
const filters = [['is_orderable', 'true']];
if (country) filters.push(['countries_redeemable_in', country]);
let first;
for await (const product of products(filters)) {
  // Payout types may be added: skip those that this program doesn't know.
  if (!known.includes(product.payout_type)) continue;
  first ??= product.code;
  console.log(product.code, product.name, amounts(product).join(', '), product.currency);
}
if (first) {
  const product = await get(`/product/${first}`, [['content', 'html']]);
  const { locale, description_html: description } = product[product.payout_type].content_resources;
  console.log(product.code, locale, description ?? '');
}
