// Results while a search is typed: those of the page that the form leads to without script. `/` goes to the field, arrows to
// a result, Enter opens it, Escape closes the list.

/** Pause in typing after which the server is asked, in milliseconds. */
const PAUSE = 120;
/** How many results the list has at most; Enter without one leads to all. */
const SHOWN = 8;

const form = document.querySelector('form.search');
const input = form.elements.q;

const list = document.createElement('ul');
list.id = 'search-results';
list.setAttribute('role', 'listbox');
list.setAttribute('aria-label', 'Results');
const status = document.createElement('p');
status.setAttribute('role', 'status');
const panel = document.createElement('div');
panel.className = 'search-panel card';
panel.hidden = true;
panel.append(list, status);
form.append(panel);

input.setAttribute('role', 'combobox');
input.setAttribute('aria-autocomplete', 'list');
input.setAttribute('aria-controls', list.id);
input.setAttribute('aria-expanded', 'false');
input.title = 'Press / to come here';

let active = -1;
let waiting;
let asked;

function open(isOpen) {
  panel.hidden = !isOpen;
  input.setAttribute('aria-expanded', isOpen && list.children.length > 0);
  if (!isOpen) activate(-1);
}

function activate(place) {
  active = place;
  [...list.children].forEach((option, own) => option.setAttribute('aria-selected', own === place));
  const option = list.children[place];
  if (option) {
    input.setAttribute('aria-activedescendant', option.id);
    option.scrollIntoView({ block: 'nearest' });
  } else input.removeAttribute('aria-activedescendant');
}

/** An option of the list, made of a result of the server's page. */
function option(result, place, address) {
  const link = result.querySelector('a');
  const made = document.createElement('li');
  made.id = `search-result-${place}`;
  made.setAttribute('role', 'option');
  made.dataset.href = new URL(link.getAttribute('href'), address).href;
  const title = document.createElement('span');
  title.append(...[...link.childNodes].map((node) => document.importNode(node, true)));
  made.append(title);
  const excerpt = result.querySelector('p');
  if (excerpt) made.append(document.importNode(excerpt, true));
  made.addEventListener('click', () => location.assign(made.dataset.href));
  return made;
}

async function search() {
  const words = input.value.trim();
  asked?.abort();
  if (!words) {
    list.replaceChildren();
    open(false);
    return;
  }
  asked = new AbortController();
  const { signal } = asked;
  const address = new URL(form.action);
  address.searchParams.set('q', words);
  try {
    const answer = await fetch(address, { signal, credentials: 'omit', referrerPolicy: 'no-referrer' });
    if (!answer.ok) throw new Error(`${answer.status}`);
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const results = [...page.querySelectorAll('.results > li')];
    list.replaceChildren(...results.slice(0, SHOWN).map((result, place) => option(result, place, address)));
    const more = results.length > SHOWN ? ' Enter shows all.' : '';
    status.textContent = results.length === 0 ? 'Nothing has all of these words.' : `${results.length} results.${more}`;
  } catch {
    if (signal.aborted) return;
    list.replaceChildren();
    status.textContent = 'The search can’t be reached. Enter tries it as a page.';
  }
  activate(-1);
  open(document.activeElement === input);
}

input.addEventListener('input', () => {
  clearTimeout(waiting);
  waiting = setTimeout(search, PAUSE);
});
input.addEventListener('focus', () => open(status.textContent !== '' && input.value.trim() !== ''));

form.addEventListener('keydown', (event) => {
  const count = list.children.length;
  if (event.key === 'Escape') {
    // Browsers would empty the field at once.
    event.preventDefault();
    if (panel.hidden) input.value = '';
    open(false);
  } else if (event.key === 'Enter' && active >= 0 && !panel.hidden) {
    event.preventDefault();
    location.assign(list.children[active].dataset.href);
  } else if (count > 0 && (event.key === 'ArrowDown' || event.key === 'ArrowUp')) {
    event.preventDefault();
    open(true);
    // One place beyond the ends: none, so that Enter leads to all.
    const step = event.key === 'ArrowDown' ? 1 : -1;
    activate(((active + 1 + step + count + 1) % (count + 1)) - 1);
  }
});
form.addEventListener('focusout', (event) => {
  if (!form.contains(event.relatedTarget)) open(false);
});
// A press on a result must not take the focus away before the click arrives.
panel.addEventListener('mousedown', (event) => event.preventDefault());

addEventListener('keydown', (event) => {
  const isTyping = event.target.closest?.('input, textarea, select, [contenteditable]');
  if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  input.focus();
  input.select();
});
