// Starts Prism over the OpenAPI document given, asks for each example of each operation, and compares.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { createInterface } from "node:readline";

const file = process.argv[2];
const document = JSON.parse(readFileSync(file, "utf8"));
const resolved = (value) =>
  value.$ref ? value.$ref.slice(2).split("/").reduce((at, part) => at[part], document) : value;

async function freePort() {
  const server = createServer();
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address();
  await new Promise((closed) => server.close(closed));
  return port;
}

const port = await freePort();
const program = "node_modules/@stoplight/prism-cli/dist/index.js";
const options = ["mock", "--port", String(port), "--host", "127.0.0.1", "--multiprocess", "false", file];
const prism = spawn(process.execPath, [program, ...options], { stdio: ["ignore", "pipe", "inherit"] });
process.on("exit", () => prism.kill());
const ended = new Promise((_, reject) => prism.on("exit", (code) => reject(new Error(`Prism ended with ${code}`))));
const listening = new Promise((listens) => {
  createInterface({ input: prism.stdout }).on("line", (line) => {
    if (line.includes("Prism is listening")) listens();
  });
});
await Promise.race([listening, ended]);
ended.catch(() => {});

let compared = 0;
for (const [path, { get: operation }] of Object.entries(document.paths)) {
  const parameters = operation.parameters.filter((parameter) => parameter.in === "path");
  const example = (parameter) => Object.values(parameter.examples)[0].value;
  const target = parameters.reduce((at, parameter) => at.replace(`{${parameter.name}}`, example(parameter)), path);
  for (const [status, response] of Object.entries(operation.responses)) {
    for (const [type, media] of Object.entries(resolved(response).content ?? {})) {
      for (const [name, { value }] of Object.entries(media.examples)) {
        const headers = { "X-Api-Key": "any.key", Prefer: `code=${status}, example=${name}` };
        const answer = await fetch(`http://127.0.0.1:${port}${target}`, { headers });
        const what = `${path}: ${status}: ${name}`;
        assert.equal(String(answer.status), status, what);
        assert.equal(answer.headers.get("content-type"), type, what);
        const body = type === "application/json" ? await answer.json() : await answer.text();
        // As texts: there is a `-0` among the numbers, which the mock writes as `0`.
        assert.equal(JSON.stringify(body), JSON.stringify(value), what);
        compared += 1;
      }
    }
  }
}
console.log(`Prism: a mock that answers its ${compared} examples`);
process.exit(0);
