// What the documentation gains where scripts run: code can be copied, requests can be tried. Nothing here is needed to
// read. The key stays in this tab's session storage and goes to this server only, in its header.

const site = document.querySelector('.docs');
const base = site.dataset.base;
// Relative: the server that sent the page is the one that is asked, whatever its public address.
const root = new URL(site.dataset.root, location.href).href;
const body = document.querySelector('.docs-body');

const KEY = 'vitrine-key';
/** The longest body that is shown, in characters. */
const SHOWN = 20000;
const HEADERS = ['Content-Type', 'ETag', 'Cache-Control', 'Link', 'X-Api-Version', 'RateLimit-Policy', 'RateLimit', 'Retry-After', 'X-Request-Id'];

const LANGUAGES = { sh: 'Shell', text: 'Shell', http: 'HTTP', js: 'JavaScript', python: 'Python', go: 'Go', php: 'PHP', ruby: 'Ruby', java: 'Java', rust: 'Rust', json: 'JSON' };

/** Tags in files that `--etag-save` would write. */
const tags = new Map();
/** Bodies in files that `-o` would write. */
const files = new Map();
/** Variables that `export` has set. */
const exported = new Map();

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function key() {
  try {
    return sessionStorage.getItem(KEY) ?? '';
  } catch {
    // Storage is off: the field alone remembers.
    return document.querySelector('.reader input')?.value.trim() ?? '';
  }
}

function keep(value) {
  try {
    if (value) sessionStorage.setItem(KEY, value);
    else sessionStorage.removeItem(KEY);
  } catch {
    // See above.
  }
}

/** The words of a shell's line, as far as the site's own lines need: quotes, variables, joined lines. */
function words(line) {
  const found = [];
  let word = null;
  const variable = (name) => {
    if (/^VITRINE_(TEST_)?KEY$/.test(name)) return key();
    return exported.get(name) ?? '';
  };
  for (let at = 0; at < line.length; ) {
    const rest = line.slice(at);
    const [all, single, double, blank, joined, plain] =
      /^(?:'([^']*)'|"([^"]*)"|(\s+)|(\\\n\s*)|([^\s'"\\]+|\\.))/.exec(rest) ?? [rest];
    if (blank !== undefined || joined !== undefined) {
      if (word !== null) found.push(word);
      word = null;
    } else {
      const open = single ?? (double ?? plain ?? '').replace(/\$([A-Z_]+)/g, (_, name) => variable(name));
      word = (word ?? '') + open;
    }
    at += all.length;
  }
  if (word !== null) found.push(word);
  return found;
}

/** The value of a path such as `.catalog[0].code // "GB"` in a file, as `jq -r` would print it. */
function valueIn(file, filter) {
  const [path, fallback] = filter.split(' // ');
  // The first text that a pattern matches, wherever it is.
  const [, pattern] = /capture\("(.*?)"\)/.exec(path) ?? [];
  if (pattern) return new RegExp(pattern).exec(files.get(file))?.[1] ?? JSON.parse(fallback ?? 'null');
  let value = JSON.parse(files.get(file) ?? 'null');
  for (const [, name, place] of path.matchAll(/\.(\w+)|\[(-?\d+)\]/g)) value = name ? value?.[name] : value?.at(Number(place));
  return String(value ?? (fallback ? JSON.parse(fallback) : null));
}

/** What a line of shell does: a request, or a variable that is set; null for a line that can't be run from here. */
function command(line) {
  const [, name, filter, file] = /^export (\w+)="\$\(jq -r '([^']*)' (\S+)\)"$/.exec(line) ?? [];
  if (name) return { name, filter, file };
  // The last answer is shown anyway.
  if (/^jq \S+ \S+$/.test(line)) return {};
  const [program, ...rest] = words(line);
  if (program !== 'curl') return null;
  const request = { headers: {}, query: [] };
  while (rest.length > 0) {
    const word = rest.shift();
    if (word === '-H') {
      const [name, ...value] = rest.shift().split(':');
      request.headers[name.trim()] = value.join(':').trim();
    } else if (word === '--data-urlencode') {
      const [name, ...value] = rest.shift().split('=');
      request.query.push([name, value.join('=')]);
    } else if (word === '--etag-save') request.save = rest.shift();
    else if (word === '--etag-compare') request.compare = rest.shift();
    else if (word === '-o') request.file = rest.shift();
    else if (['-i', '-s', '-G', '--compressed'].includes(word)) continue;
    else if (word.startsWith(base)) request.path = word.slice(base.length);
    else return null;
  }
  return request.path === undefined ? null : { request };
}

/** The lines of a block of shell, or null if one of them can't be run from here. */
function lines(block) {
  const all = block.trim().split(/(?<!\\)\n/);
  const commands = all.map(command);
  return commands.every(Boolean) && commands.some(({ request }) => request) ? all : null;
}

/** Runs lines of shell one after the other; gives what the last request brought. */
async function runLines(all) {
  let last;
  for (const line of all) {
    const unset = [...line.matchAll(/\$([A-Z]+)\b/g)].map(([, name]) => name).find((name) => !exported.has(name));
    if (unset) throw new Error(`$${unset} is not set. Run the steps above first.`);
    const { request, name, filter, file } = command(line);
    if (request) last = await send(request);
    if (name && !files.has(file)) throw new Error(`${file} is not there. Run the steps above first.`);
    if (name) exported.set(name, valueIn(file, filter));
  }
  return last;
}

async function send({ path, headers, query = [], save, compare, file }) {
  const parameters = new URLSearchParams(query).toString();
  const address = root + path + (parameters && (path.includes('?') ? '&' : '?')) + parameters;
  if (compare && tags.has(compare)) headers['If-None-Match'] = tags.get(compare);
  // No cache between: the reader wants to see what the server says.
  const answer = await fetch(address, { headers, cache: 'no-store', credentials: 'omit', referrerPolicy: 'no-referrer' });
  if (save && answer.headers.has('ETag')) tags.set(save, answer.headers.get('ETag'));
  const text = await answer.text();
  if (file) files.set(file, text);
  return { answer, text };
}

function show({ answer, text }, took) {
  let shown = text;
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // Not JSON: as it is.
  }
  if (shown.length > SHOWN) shown = `${shown.slice(0, SHOWN)}\n… ${shown.length - SHOWN} more characters`;
  const kind = answer.status < 400 ? 'good' : answer.status < 500 ? 'caution' : 'bad';
  const list = element('dl');
  for (const name of HEADERS) {
    const value = answer.headers.get(name);
    if (value !== null) list.append(element('dt', { textContent: name }), element('dd', { textContent: value }));
  }
  const status = [
    element('span', { className: `badge ${kind}`, textContent: `${answer.status} ${answer.statusText}`.trim() }),
    element('span', { className: 'small quiet', textContent: `${Math.round(took)} ms` }),
  ];
  const rest = shown ? [list, element('pre', { tabIndex: 0 }, element('code', { textContent: shown }))] : [list];
  return { status, rest };
}

/** Shows below `place` what `work` brings, which may need the key. */
async function run(work, needsKey, place) {
  let result = place.querySelector(':scope > .result');
  if (!result) {
    result = element('div', { className: 'result card' }, element('p', { className: 'status' }));
    // Screen readers tell the status as it comes, and leave the rest to be read.
    result.firstChild.setAttribute('role', 'status');
    place.append(result);
  }
  const tell = (status, rest = []) => {
    result.firstChild.replaceChildren(...status);
    result.replaceChildren(result.firstChild, ...rest);
  };
  if (needsKey && !key()) {
    tell(['Put your key into the field first.']);
    document.querySelector('.reader input')?.focus();
    return;
  }
  try {
    const started = performance.now();
    const { status, rest } = show(await work(), performance.now() - started);
    tell(status, rest);
  } catch (error) {
    tell([`The request couldn't be sent: ${error.message}`]);
  }
}

/** The field for the key. */
function reader() {
  const input = element('input', { id: 'reader-key', type: 'password', autocomplete: 'off', spellcheck: false, value: key(), placeholder: 'PREFIX.SECRET' });
  const forget = element('button', { className: 'button', type: 'button', textContent: 'Forget' });
  const form = element('form', { className: 'reader card' },
    element('label', { htmlFor: 'reader-key', textContent: 'Your key, to try things on this page' }),
    input, forget,
    element('p', { className: 'small quiet', textContent: 'It stays in this tab and goes to this server only.' }));
  input.addEventListener('input', () => keep(input.value.trim()));
  forget.addEventListener('click', () => {
    keep('');
    input.value = '';
    input.focus();
  });
  form.addEventListener('submit', (event) => event.preventDefault());
  return form;
}

function tools(pre) {
  const code = pre.querySelector('code');
  if (!code || pre.closest('details')) return null;
  const language = code.className.replace('language-', '');
  const place = element('div', { className: 'code' });
  const bar = element('div', { className: 'code-tools' }, element('span', { textContent: LANGUAGES[language] ?? '' }));
  const copy = element('button', { className: 'button', type: 'button', textContent: 'Copy' });
  copy.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      copy.textContent = 'Copied';
    } catch {
      // Only secure addresses may write there: select it, and the reader copies.
      getSelection().selectAllChildren(code);
      copy.textContent = 'Selected';
    }
    setTimeout(() => (copy.textContent = 'Copy'), 2000);
  });
  bar.append(copy);
  const runnable = language === 'sh' ? lines(code.textContent) : null;
  if (runnable) {
    const go = element('button', { className: 'button primary', type: 'button', textContent: 'Run' });
    const needsKey = code.textContent.includes('X-Api-Key');
    go.addEventListener('click', () => run(() => runLines(runnable), needsKey, place));
    bar.append(go);
  }
  pre.replaceWith(place);
  place.append(bar, pre);
  return runnable ? place : null;
}

function tryable(form) {
  form.hidden = false;
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    let path = form.dataset.path;
    const request = { headers: {}, query: [] };
    if (form.dataset.key === 'true') request.headers['X-Api-Key'] = key();
    for (const field of form.querySelectorAll('[data-in]')) {
      const value = field.value.trim();
      if (!value) continue;
      if (field.dataset.in === 'path') path = path.replace(`{${field.name}}`, encodeURIComponent(value));
      else if (field.dataset.in === 'header') request.headers[field.name] = value;
      else for (const one of field.dataset.list ? value.split(/\s*\n\s*/) : [value]) request.query.push([field.name, one]);
    }
    run(() => send({ ...request, path }), form.dataset.key === 'true', form);
  });
}

const forms = document.querySelectorAll('form.try');
forms.forEach(tryable);
const runnable = [...body.querySelectorAll('pre')].map(tools).find(Boolean);
// Where the reader needs it first.
if (forms.length > 0) document.querySelector('#request').after(reader());
else (runnable?.closest('.beside') ?? runnable?.closest('.tabs') ?? runnable)?.before(reader());
