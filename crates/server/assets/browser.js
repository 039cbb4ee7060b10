// The products with script: filters and the search apply as they are picked and typed, and keys move through the products.
// Without script, all of it works by buttons and addresses.

const form = document.querySelector('.filters');
const content = () => document.querySelector('#content');

/** How long typing rests before the search is sent, in milliseconds. */
const TYPING_PAUSE = 200;

document.addEventListener('click', ({ target }) => {
  for (const menu of document.querySelectorAll('details.menu[open]')) if (!menu.contains(target)) menu.open = false;
});

// Filters and the search apply at once: the page is fetched, and what differs takes its place.

let underWay;
const announcer = document.createElement('p');
announcer.className = 'unseen';
announcer.setAttribute('aria-live', 'polite');

/** Returns the box of a value, as `name=value`. */
function box(pick) {
  return [...form.querySelectorAll('input[type="checkbox"]')].find((one) => `${one.name}=${one.value}` === pick);
}

/** Shows the page of an address without leaving this one; `enter` puts it into the history. */
async function show(address, enter) {
  underWay?.abort();
  const own = new AbortController();
  underWay = own;
  try {
    const answer = await fetch(address, { signal: own.signal });
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    if (own.signal.aborted) return;
    const [results, filters] = [page.querySelector('#content'), page.querySelector('.filter-groups')];
    if (!answer.ok || !results) throw new Error('no page of products');
    const focused = document.activeElement;
    const pick = focused?.matches('.filter-groups input') && `${focused.name}=${focused.value}`;
    const isOpen = form.querySelector('.filter-groups')?.open;
    const opened = [...form.querySelectorAll('.more[open]')].map((more) => more.parentElement.querySelector('legend')?.textContent);
    content().replaceWith(results);
    const former = form.querySelector('.filter-groups');
    if (former && filters) former.replaceWith(filters);
    else if (filters) form.append(filters);
    else former?.remove();
    if (filters && isOpen) filters.open = true;
    for (const more of form.querySelectorAll('.more')) more.open = opened.includes(more.parentElement.querySelector('legend')?.textContent);
    document.title = page.title;
    if (pick) {
      const again = box(pick);
      const hiding = again?.closest('.more');
      if (hiding) hiding.open = true;
      again?.focus();
    }
    enter?.();
    announcer.textContent = results.querySelector('[role="status"]')?.textContent ?? '';
  } catch (error) {
    if (error.name !== 'AbortError') location.assign(address);
  }
}

/** Returns the address of what the form says. */
function addressOfForm() {
  const said = [...new FormData(form)].filter(([, value]) => value.trim() !== '');
  const query = new URLSearchParams(said).toString();
  return query ? `/catalog?${query}` : '/catalog';
}

if (form) {
  document.documentElement.classList.add('with-script');
  document.body.append(announcer);
  const apply = (enter) => {
    const address = addressOfForm();
    if (address === location.pathname + location.search) return;
    show(address, () => enter(address));
  };
  const push = (address) => history.pushState({}, '', address);
  form.addEventListener('change', ({ target }) => {
    if (target.type === 'checkbox' || target.name === 'as') apply(push);
  });
  let typing;
  let isTyping = false;
  form.q.addEventListener('input', () => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      // One entry of the history for all that is typed in one go.
      apply((address) => {
        if (isTyping) history.replaceState({}, '', address);
        else push(address);
        isTyping = true;
      });
    }, TYPING_PAUSE);
  });
  form.q.addEventListener('blur', () => {
    isTyping = false;
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    clearTimeout(typing);
    apply(push);
  });
  window.addEventListener('popstate', () => {
    form.q.value = new URLSearchParams(location.search).get('q') ?? '';
    if (form.elements.as) form.elements.as.value = new URLSearchParams(location.search).get('as') ?? '';
    show(location.href);
  });
}

// Selected products: all of the page at once, and their number.

const SELECTABLE = '.products input[name="code"]';

function showSelected() {
  const all = [...document.querySelectorAll(SELECTABLE)];
  const selected = all.filter((one) => one.checked).length;
  const count = document.querySelector('.selected-count');
  if (count) count.textContent = selected === 0 ? 'Selected products:' : `${selected} selected:`;
  const every = document.querySelector('input[data-select="page"]');
  if (!every) return;
  every.checked = selected > 0 && selected === all.length;
  every.indeterminate = selected > 0 && selected < all.length;
}

document.addEventListener('change', ({ target }) => {
  if (target.dataset.select === 'page') for (const one of document.querySelectorAll(SELECTABLE)) one.checked = target.checked;
  else if (!target.matches(SELECTABLE)) return;
  showSelected();
});

// Keys.

const ROWS = '.products tbody tr';

function linkOf(row) {
  return row?.querySelector('.of-name a');
}

/** Moves to the next row, or by -1 to the one before. */
function move(by) {
  const rows = [...document.querySelectorAll(ROWS)];
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const next = at < 0 ? rows[by > 0 ? 0 : rows.length - 1] : rows[at + by];
  linkOf(next)?.focus();
  next?.scrollIntoView({ block: 'nearest' });
  return Boolean(next);
}

function toggleSelected() {
  const selected = document.activeElement.closest(ROWS)?.querySelector('input[type="checkbox"][name="code"]');
  selected?.click();
  return Boolean(selected);
}

function showShortcuts() {
  const dialog = document.querySelector('.shortcuts');
  if (!dialog) return false;
  dialog.querySelector('[data-needs-selection]').hidden = !document.querySelector('input[name="code"]');
  dialog.showModal();
  return true;
}

const KEYS = {
  '/': () => {
    form?.q.select();
    return Boolean(form);
  },
  '?': showShortcuts,
  j: () => move(1),
  k: () => move(-1),
  x: toggleSelected,
};

/** Arrows move through the products only from there, or from nowhere: elsewhere they scroll. */
function isAmongRows() {
  const active = document.activeElement;
  return active === document.body || Boolean(active?.closest(ROWS));
}

document.addEventListener('keydown', (event) => {
  const { target, key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (key === 'Escape') {
    const menu = target.closest?.('details.menu[open]');
    if (menu) {
      menu.open = false;
      menu.querySelector('summary').focus();
    } else if (target === form?.q) target.blur();
    return;
  }
  const isField = target.matches?.('input:not([type="checkbox"]), textarea, select, dialog *');
  if (isField || !document.querySelector('.products, .filters')) return;
  const arrow = { ArrowDown: 'j', ArrowUp: 'k' }[key];
  const act = arrow ? isAmongRows() && KEYS[arrow] : KEYS[key];
  if (act && act()) event.preventDefault();
});
