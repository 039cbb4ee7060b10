// Keeps a copy of what can be ordered in SQLite: the products, and the token that belongs to them.
import { DatabaseSync } from 'node:sqlite';

const { VITRINE_URL: api, VITRINE_KEY: key, COPY: file = 'copy.db' } = process.env;
const FILTERS = [['is_orderable', 'true']]; // other filters need another copy
const WAIT = 45;
const LONGEST_PAUSE = 60;

const copy = new DatabaseSync(file);
copy.exec('PRAGMA busy_timeout = 5000'); // others may read it
copy.exec('CREATE TABLE IF NOT EXISTS product (code TEXT PRIMARY KEY, json TEXT NOT NULL)');
// `complete` is 0 until a new copy has had all products.
copy.exec('CREATE TABLE IF NOT EXISTS sync (token TEXT NOT NULL, complete INTEGER NOT NULL)');

// Returns status, pause and body of the answer: status 0 if there is none, an empty body if it isn't JSON.
async function ask(token, wait) {
  const query = token ? [...FILTERS, ['since', token], ['wait', wait]] : FILTERS;
  let status = 0;
  let pause = 0;
  try {
    const answer = await fetch(`${api}/product/changes?${new URLSearchParams(query)}`, {
      headers: { 'X-Api-Key': key },
      signal: AbortSignal.timeout(1000 * (WAIT + 15)),
    });
    status = answer.status;
    pause = Number(answer.headers.get('Retry-After')) || 0;
    return { status, pause, body: (await answer.json()) ?? {} };
  } catch (error) {
    return { status, pause, body: { message: String(error) } };
  }
}

// Applies an answer and stores its token, in one transaction.
function apply({ changes, next }, isFirst, complete) {
  const put = copy.prepare('REPLACE INTO product VALUES (?, ?)');
  const remove = copy.prepare('DELETE FROM product WHERE code = ?');
  copy.exec('BEGIN');
  if (isFirst) copy.exec('DELETE FROM product');
  for (const { code, product } of changes) {
    if (product === null) remove.run(code);
    else put.run(code, JSON.stringify(product));
  }
  copy.exec('DELETE FROM sync');
  copy.prepare('INSERT INTO sync VALUES (?, ?)').run(next, complete);
  copy.exec('COMMIT');
}

let { token, complete } = copy.prepare('SELECT token, complete FROM sync').get() ?? { complete: 0 };
let wait = WAIT;
let failures = 0;
for (;;) {
  let { status, pause, body } = await ask(token, wait);
  if (status === 200 && body.next) {
    complete = !body.has_more || (complete && token) ? 1 : 0;
    apply(body, !token, complete);
    console.log(body.changes.length, 'changes');
    token = body.next;
    wait = body.has_more ? 0 : WAIT;
    if (!body.has_more) failures = 0;
  } else {
    const why = `status ${status} ${body.type ?? ''}: ${body.message ?? 'no answer of this API'}`;
    if (status === 410 && body.type === 'changes_gone' && token) {
      token = null; // start over, and replace the copy
    } else if (status >= 300 && status < 500 && ![408, 425, 429].includes(status)) {
      throw new Error(why);
    }
    console.error(why);
    failures += 1;
    pause = Math.max(pause, Math.min(2 ** failures, LONGEST_PAUSE));
  }
  if (pause) await new Promise((done) => setTimeout(done, 1000 * (pause + Math.random())));
}
