// The catalog by Fastify over SQLite: better-sqlite3, @fastify/compress.

import { createHash } from "node:crypto";
import compress from "@fastify/compress";
import Database from "better-sqlite3";
import Fastify from "fastify";

const hash = (key) => createHash("sha256").update(key).digest("hex");
const keys = new Set([hash(process.env.API_KEY)]);

const database = new Database(process.env.DATABASE_FILE, { readonly: true });
const one = database.prepare("select * from product where code = ?");
const lists = new Map();

// One statement for each number of values, prepared once.
function list(countries, categories) {
  const shape = `${countries} ${categories}`;
  if (!lists.has(shape)) {
    const any = (table, column, count) =>
      count === 0
        ? ""
        : ` and exists (select 1 from ${table} where product_code = code and ${column} in (${Array(count).fill("?")}))`;
    lists.set(
      shape,
      database.prepare(
        "select * from product where code > ?" +
          any("product_country", "country", countries) +
          any("product_category", "category", categories) +
          " order by code limit ?",
      ),
    );
  }
  return lists.get(shape);
}

function product(row) {
  return {
    name: row.name,
    code: row.code,
    currency: row.currency,
    state: row.state,
    is_orderable: row.is_orderable === 1,
    payout_type: row.payout_type,
    categories: JSON.parse(row.categories),
    countries_redeemable_in: JSON.parse(row.countries_redeemable_in),
    customer_service: { phone_number: row.phone_number, website_url: row.customer_service_url },
    discount_multiplier: row.discount_multiplier,
    availability: row.availability ?? undefined,
    gift_card: JSON.parse(row.gift_card),
  };
}

const server = Fastify();
await server.register(compress, { encodings: ["gzip", "identity"] });

server.addHook("onRequest", async (request, reply) => {
  const key = request.headers["x-api-key"];
  if (typeof key !== "string" || !keys.has(hash(key))) {
    return reply.code(401).send();
  }
});

const querystring = {
  type: "object",
  properties: {
    countries_redeemable_in: { type: "array", items: { type: "string" }, default: [] },
    categories: { type: "array", items: { type: "string" }, default: [] },
    after: { type: "string", default: "" },
    limit: { type: "integer", minimum: 1, maximum: 500, default: 500 },
  },
};

server.get("/v2/product", { schema: { querystring } }, async (request) => {
  const { countries_redeemable_in: countries, categories, after, limit } = request.query;
  const rows = list(countries.length, categories.length).all(after, ...countries, ...categories, limit);
  const catalog = rows.map(product);
  const cursors = { before: catalog.at(0)?.code ?? null, after: catalog.at(-1)?.code ?? null };
  return { catalog, pagination: { cursors, page: { limit } } };
});

server.get("/v2/product/:code", async (request, reply) => {
  const row = one.get(request.params.code);
  return row ? product(row) : reply.code(404).send();
});

await server.listen({ host: "127.0.0.1", port: Number(process.env.PORT) });
