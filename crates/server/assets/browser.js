// Filters of the catalog browser apply as they are picked. Without script there is a button.

const form = document.querySelector('.filters');
const LAST_PICK = 'vitrine-last-pick';

/** Returns the box of a value, as `name=value`. */
function box(pick) {
  return [...form.querySelectorAll('input[type="checkbox"]')].find((one) => `${one.name}=${one.value}` === pick);
}

if (form) {
  document.documentElement.classList.add('with-script');
  form.addEventListener('change', (event) => {
    if (event.target.type !== 'checkbox') return;
    // Where the reader goes on, once the page is there.
    sessionStorage.setItem(LAST_PICK, `${event.target.name}=${event.target.value}`);
    form.requestSubmit();
  });
  const picked = sessionStorage.getItem(LAST_PICK);
  sessionStorage.removeItem(LAST_PICK);
  const last = picked && box(picked);
  if (last) {
    for (let group = last.closest('details'); group; group = group.parentElement.closest('details')) group.open = true;
    last.focus();
  }
}
