// Tabs of languages: one choice for all pages, remembered in this browser. Without script all languages are shown, one below
// the other; until then the style sheet shows the first, so that pages don't jump.

const LANGUAGE = 'vitrine-language';

function remembered() {
  try {
    return localStorage.getItem(LANGUAGE);
  } catch {
    // Storage is off: each page begins with the first language.
    return null;
  }
}

function remember(language) {
  try {
    localStorage.setItem(LANGUAGE, language);
  } catch {
    // See above.
  }
}

/** Makes tabs of a group; gives what shows a language, if the group has it. */
function tabbed(group, number) {
  const panels = [...group.querySelectorAll(':scope > .tab')];
  const list = document.createElement('div');
  list.className = 'tab-list';
  list.setAttribute('role', 'tablist');
  list.setAttribute('aria-label', 'Language');
  const tabs = panels.map((panel, place) => {
    const { language } = panel.dataset;
    const tab = document.createElement('button');
    tab.type = 'button';
    tab.id = `tab-${number}-${place}`;
    tab.textContent = language;
    tab.setAttribute('role', 'tab');
    panel.id ||= `panel-${number}-${place}`;
    tab.setAttribute('aria-controls', panel.id);
    panel.setAttribute('role', 'tabpanel');
    panel.setAttribute('aria-labelledby', tab.id);
    tab.addEventListener('click', () => choose(language, tab));
    return tab;
  });
  const show = (language) => {
    const shown = panels.findIndex((panel) => panel.dataset.language === language);
    if (shown < 0) return;
    panels.forEach((panel, place) => {
      panel.hidden = place !== shown;
      tabs[place].setAttribute('aria-selected', place === shown);
      // One stop for the key Tab; arrows go on from there.
      tabs[place].tabIndex = place === shown ? 0 : -1;
    });
  };
  list.addEventListener('keydown', (event) => {
    const at = tabs.indexOf(document.activeElement);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (next === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const tab = tabs.at(next % tabs.length);
    tab.focus();
    tab.click();
  });
  list.append(...tabs);
  group.prepend(list);
  show(panels[0].dataset.language);
  group.classList.add('ready');
  return show;
}

const groups = [...document.querySelectorAll('.tabs')].map(tabbed);

function showAll(language) {
  for (const show of groups) show(language);
}

/** Shows a language everywhere; the tab that was pressed stays where it is on the screen. */
function choose(language, tab) {
  const before = tab.getBoundingClientRect().top;
  showAll(language);
  remember(language);
  window.scrollBy({ top: tab.getBoundingClientRect().top - before, behavior: 'instant' });
}

/** Shows the tab that the address names, as links of former pages do. */
function followAddress() {
  const panel = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!panel?.matches('.tab')) return;
  showAll(panel.dataset.language);
  panel.parentElement.scrollIntoView();
}

showAll(remembered());
followAddress();
addEventListener('hashchange', followAddress);
