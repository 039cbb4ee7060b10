// Makes a Postman collection of the OpenAPI document given, and runs all of its requests with newman.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import newman from "newman";
import converter from "openapi-to-postmanv2";

const document = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { VITRINE_BASE: base, VITRINE_KEY: key } = process.env;

const converted = await new Promise((resolve, reject) => {
  const options = { parametersResolution: "Example" };
  converter.convertV2({ type: "json", data: document }, options, (error, result) => (error ? reject(error) : resolve(result)));
});
assert.ok(converted.result, converted.reason);
const collection = converted.output[0].data;

// The converter makes up values for parameters without an example. These are cursors and tokens, which only a response can
// give: people take the ticks off them.
const parameters = Object.values(document.paths).flatMap((path) => path.get.parameters);
const withoutExample = parameters.filter((parameter) => parameter.in === "query" && !parameter.examples);
const names = new Set(withoutExample.map((parameter) => parameter.name));
assert.deepEqual([...names].sort(), ["before", "since", "wait"]);

const requests = [];
function visit(items) {
  for (const item of items) {
    if (item.item) visit(item.item);
    else requests.push(item);
  }
}
visit(collection.item);
for (const { request } of requests) {
  for (const parameter of request.url.query ?? []) parameter.disabled ||= names.has(parameter.key);
}

// What Postman runs after each response.
const script = `
  pm.test("is answered", () => pm.expect(pm.response.code).to.equal(200));
  pm.test("has the header of its version", () => {
    const expected = pm.request.url.getPath().includes("/texts/") ? undefined : "${document.info.version}";
    pm.expect(pm.response.headers.get("X-Api-Version")).to.equal(expected);
  });
  if (pm.request.method === "GET") pm.test("decodes", () => {
    const isJson = pm.response.headers.get("Content-Type").startsWith("application/json");
    if (isJson) pm.expect(pm.response.json()).to.be.an("object").that.is.not.empty;
    else pm.expect(pm.response.text().length).to.be.above(20);
  });`;
collection.event = [{ listen: "test", script: { type: "text/javascript", exec: script.split("\n") } }];

const values = { baseUrl: base, apiKey: key };
const summary = await new Promise((resolve, reject) => {
  const envVar = Object.entries(values).map(([name, value]) => ({ key: name, value }));
  newman.run({ collection, envVar, reporters: [] }, (error, run) => (error ? reject(error) : resolve(run)));
});
const failures = summary.run.failures.map(({ source, at, error }) => `${source?.name} ${at}: ${error.message}`);
assert.deepEqual(failures, []);
const sent = summary.run.executions.length;
assert.equal(sent, requests.length);
assert.ok(summary.run.stats.assertions.total > 2 * sent);
console.log(`Postman: a collection of ${sent} requests, all answered`);
// The runner keeps handles open.
process.exit(0);
